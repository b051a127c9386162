"""Text models, such as language models, for every part of icy that asks them: a Question gets an Answer.

`models` has their interface and their names, `cache` saves answers, and `local` asks models of the library
transformers. `client` asks a server; it needs the extra `text` (httpx and tenacity).
"""

from icy.core.register import register_text_model

_MODELS = {
    "http": ("models:HttpModel", "An OpenAI-compatible server, named by URL#MODEL."),
    "transformers": ("local:TransformersModel", "A model in a folder, transformers#FOLDER (an extra)."),
}

for _name, (_place, _description) in _MODELS.items():
    register_text_model(_name, f"{__name__}.{_place}", description=_description, source="icy")

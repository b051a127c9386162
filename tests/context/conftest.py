"""The fixture of the tests of text models, for those in context."""

from tests.text.conftest import no_proxy as no_proxy

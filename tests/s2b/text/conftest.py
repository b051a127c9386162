"""The fixture of the tests of text models, for those of S2B."""

from tests.text.conftest import no_proxy as no_proxy

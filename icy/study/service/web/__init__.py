"""The web pages of the service, on Starlette. Only this package needs the extra "study"."""

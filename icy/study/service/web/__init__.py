"""The pages of the service, on Starlette; all that needs the extra "study" is here."""

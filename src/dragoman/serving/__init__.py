"""HTTP server: trained models behind the protocols of LibreTranslate, DeepL and Google."""

"""Serving: trained models behind the protocols that translation clients speak."""

"""Translate with a trained model: segmentation, search, engines, output."""

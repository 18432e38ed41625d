"""Hugging Face's Marian, as the benchmarks build it: the paper's model with fresh weights."""

import torch
from torch import nn

from dragoman.models.options import TransformerOptions


def use_steady_attention() -> None:
    """Keep cuDNN out of PyTorch's attention in this process.

    Notes
    -----
    On a Hopper card PyTorch hands attention to cuDNN first, which plans every shape that it has not
    seen before for some tenths of a second. With batches and translations of all lengths that is
    most of a rival's time: measured with PyTorch 2.11, 12 times what an update takes without.
    """
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)


def build_marian(
    shape: TransformerOptions,
    *,
    vocabulary_size: int,
    pad_id: int,
    end_id: int,
    max_positions: int,
    attention: str = "sdpa",
) -> nn.Module:
    """Build Marian with random weights.

    Parameters
    ----------
    shape : TransformerOptions
        Its shape.
    vocabulary_size : int
        Subwords, shared by both sides.
    pad_id : int
        The padding, which also begins a translation.
    end_id : int
        The end symbol.
    max_positions : int
        Subwords of the longest sentence.
    attention : str
        “sdpa”, which is PyTorch's own, or “eager”, which spells it out.

    Returns
    -------
    nn.Module
        On the CPU; one matrix of words, dropout where the paper has it.
    """
    import transformers

    config = transformers.MarianConfig(
        vocab_size=vocabulary_size,
        d_model=shape.model_dim,
        encoder_layers=shape.num_encoder_layers,
        decoder_layers=shape.num_decoder_layers,
        encoder_attention_heads=shape.num_heads,
        decoder_attention_heads=shape.num_heads,
        encoder_ffn_dim=shape.feed_forward_dim,
        decoder_ffn_dim=shape.feed_forward_dim,
        dropout=shape.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=max_positions,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=pad_id,
        eos_token_id=end_id,
        decoder_start_token_id=pad_id,
        forced_eos_token_id=None,
    )
    return transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation=attention)

"""The Transformer against PyTorch's layers and stacks, and its steps against its whole."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dragoman.data.batches import Sequences, flatten, make_batch, pad_sequences
from dragoman.data.packing import Capacity, pack
from dragoman.kernels.language import own_random_numbers
from dragoman.models.attention.mask import Mask
from dragoman.models.build import build_model
from dragoman.models.interface import DecoderState, TranslationModel, Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import sinusoidal_positions
from dragoman.training.objectives.loss import TrainingStep

PAD, EOS, SIZE = 2, 0, 19
DIM, HEADS, INNER = 16, 4, 24
SOURCE = [[3, 4, 5, 6, 7, EOS], [8, EOS], [9, 10, 11, EOS]]
TARGET = [[12, EOS], [13, 14, 15, 16, EOS], [17, 18, EOS]]


def make_model(norm_position="post", **changes):
    shape = {
        "num_encoder_layers": 2, "num_decoder_layers": 2, "model_dim": DIM,
        "feed_forward_dim": INNER, "num_heads": HEADS, "norm_position": norm_position,
    }  # fmt: skip
    torch.manual_seed(0)
    options = TransformerOptions(**shape | changes)
    model = build_model(options, Vocabulary(SIZE, SIZE, PAD, EOS)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(float("norm.weight" in name), 0.3)
    return model


def make_pairs(source=SOURCE, target=TARGET):
    return make_batch(flatten(source), flatten(target), PAD)


VARIANTS = {
    "post": {},
    "pre": {"norm_position": "pre"},
    "biases": {"attention_bias": True},
    "learned": {"positions": "learned", "max_positions": 12},
    "untied": {"tied_embeddings": "none"},
    "widths": {"key_dim": 3, "value_dim": 5},
}


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


# Against PyTorch


def copy_linear(theirs, ours):
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


def copy_attention(theirs, ours):
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([each.weight for each in parts]))
    theirs.in_proj_bias.copy_(torch.cat([each.bias for each in parts]))
    copy_linear(theirs.out_proj, ours.output)


@torch.no_grad()
def copy_layer(theirs, ours):
    copy_attention(theirs.self_attn, ours.self_attention)
    copy_linear(theirs.norm1, ours.self_attention_norm.norm)
    last_norm = theirs.norm2
    if hasattr(ours, "cross_attention"):
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        copy_linear(theirs.norm2, ours.cross_attention_norm.norm)
        last_norm = theirs.norm3
    copy_linear(theirs.linear1, ours.feed_forward.inner)
    copy_linear(theirs.linear2, ours.feed_forward.outer)
    copy_linear(last_norm, ours.feed_forward_norm.norm)
    assert last_norm.eps == ours.feed_forward_norm.norm.epsilon


def is_padding(lengths, length):
    return torch.arange(length) >= lengths[:, None]


@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_encoder_layer_equals_pytorch(norm_position):
    ours = make_model(norm_position, attention_bias=True).encoder[0]
    theirs = nn.TransformerEncoderLayer(
        DIM, HEADS, INNER, dropout=0.0, batch_first=True, norm_first=norm_position == "pre"
    )
    copy_layer(theirs, ours)
    states, lengths = torch.randn(3, 6, DIM), torch.tensor([6, 1, 4])
    expected = theirs(states, src_key_padding_mask=is_padding(lengths, 6))
    found = ours(states, lengths)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_decoder_layer_equals_pytorch(norm_position):
    ours = make_model(norm_position, attention_bias=True).decoder[0]
    theirs = nn.TransformerDecoderLayer(
        DIM, HEADS, INNER, dropout=0.0, batch_first=True, norm_first=norm_position == "pre"
    )
    copy_layer(theirs, ours)
    states, memory, lengths = (
        torch.randn(3, 5, DIM),
        torch.randn(3, 6, DIM),
        torch.tensor([6, 1, 4]),
    )
    expected = theirs(
        states,
        memory,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        memory_key_padding_mask=is_padding(lengths, 6),
    )
    source = ours.cross_attention.keys_and_values(memory)
    found = ours(states, source, Mask(key_lengths=lengths))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_whole_model_equals_pytorch(norm_position):
    ours = make_model(norm_position, attention_bias=True)
    theirs = nn.Transformer(
        DIM, HEADS, 2, 2, INNER, dropout=0.0, batch_first=True, norm_first=norm_position == "pre"
    )
    for layer, own in zip(theirs.encoder.layers, ours.encoder, strict=True):
        copy_layer(layer, own)
    for layer, own in zip(theirs.decoder.layers, ours.decoder, strict=True):
        copy_layer(layer, own)
    with torch.no_grad():
        for name in ("encoder", "decoder"):
            # PyTorch ends both stacks with a norm, which only pre-norm wants.
            getattr(theirs, name).norm = nn.Identity()
            if norm_position == "pre":
                getattr(theirs, name).norm = nn.LayerNorm(DIM)
                copy_linear(getattr(theirs, name).norm, getattr(ours, f"{name}_norm"))
    batch = make_pairs()
    words, places = ours.output.words, sinusoidal_positions(0, 6, DIM, torch.device("cpu"))
    read = torch.cat([torch.full((3, 1), PAD), batch.target.ids[:, :-1]], dim=1)
    padding = is_padding(batch.source.lengths, 6)
    hidden = theirs(
        words[batch.source.ids] * DIM**0.5 + places,
        words[read] * DIM**0.5 + places[:5],
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_key_padding_mask=is_padding(batch.target.lengths, 5),
    )
    found = ours(batch).hidden
    is_token = batch.target.is_token
    torch.testing.assert_close(found[is_token], hidden[is_token], rtol=1e-5, atol=1e-5)


# Steps against the whole


def read_prefixes(model, source, prefixes, capacity=9):
    """Run prefixes [sentences, beams, length] one by one from scratch; give the last states."""
    results = []
    for row, beams in enumerate(prefixes):
        of_row = []
        for prefix in beams:
            state = model.start(model.encode(pad_sequences(flatten([source[row]]), PAD)), capacity)
            for token in (PAD, *prefix):
                hidden, state = model.step(torch.tensor([[token]]), state)
            of_row.append(hidden[0, 0])
        results.append(torch.stack(of_row))
    return torch.stack(results)


@torch.no_grad()
def test_steps_equal_teacher_forcing(model):
    batch = make_pairs()
    whole = model(batch).hidden
    state = model.start(model.encode(batch.source), batch.target.ids.size(1))
    read = batch.target.shifted(PAD)
    for place in range(read.size(1)):
        hidden, state = model.step(read[:, place : place + 1], state)
        is_token = place < batch.target.lengths
        torch.testing.assert_close(
            hidden[is_token, 0], whole[is_token, place], rtol=1e-5, atol=1e-5
        )


@torch.no_grad()
def test_reordered_and_kept_states_equal_prefixes_run_from_scratch(model):
    """Follow a made-up search: spread to three beams, swap them, lose a sentence, go on."""
    state = model.start(model.encode(pad_sequences(flatten(SOURCE), PAD)), 9)
    _, state = model.step(torch.full((3, 1), PAD), state)
    state = state.reorder(torch.zeros(3, 3, dtype=torch.int64))
    prefixes = [[[3 + row + beam] for beam in range(3)] for row in range(3)]
    source = SOURCE
    moves = [
        (torch.tensor([[2, 0, 0], [1, 1, 2], [0, 2, 1]]), None),
        (torch.tensor([[1, 2, 0], [2, 1, 0]]), [2, 0]),
        (torch.tensor([[1, 0], [2, 2]]), None),
        (torch.tensor([[1, 1]]), [1]),
    ]
    for beams, kept in moves:
        newest = torch.tensor([[prefix[-1] for prefix in row] for row in prefixes])
        hidden, state = model.step(newest, state)
        expected = read_prefixes(model, source, prefixes)
        torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=1e-5)
        if kept is not None:
            state = state.keep(torch.tensor(kept))
            prefixes, source = [prefixes[row] for row in kept], [source[row] for row in kept]
        state = state.reorder(beams)
        prefixes = [
            [
                [*row[beam], (row[beam][-1] * 5 + place) % 16 + 3]
                for place, beam in enumerate(chosen)
            ]
            for row, chosen in zip(prefixes, beams.tolist(), strict=True)
        ]
    newest = torch.tensor([[prefix[-1] for prefix in row] for row in prefixes])
    hidden, _ = model.step(newest, state)
    torch.testing.assert_close(hidden, read_prefixes(model, source, prefixes), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_reorder_and_keep_leave_the_old_state_usable(model):
    """A state that was not stepped is not written to by its copies."""
    state = model.start(model.encode(pad_sequences(flatten(SOURCE), PAD)), 4)
    _, state = model.step(torch.full((3, 1), PAD), state)
    kept = state.keep(torch.tensor([1, 2]))
    spread = state.reorder(torch.zeros(3, 2, dtype=torch.int64))
    model.step(torch.full((2, 1), 5), kept)
    model.step(torch.full((3, 2), 6), spread)
    hidden, _ = model.step(torch.full((3, 1), 7), state)
    torch.testing.assert_close(hidden, read_prefixes(model, SOURCE, [[[7]]] * 3, 4))


# Padding, company, order


words_strategy = st.lists(st.integers(3, SIZE - 1), min_size=0, max_size=6)


@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(words_strategy, words_strategy), min_size=1, max_size=4),
    shuffled=st.randoms(),
)
def test_company_and_order_change_no_score(pairs, shuffled):
    model = make_model()
    order = list(range(len(pairs)))
    shuffled.shuffle(order)
    sources = [[*pairs[index][0], EOS] for index in order]
    targets = [[*pairs[index][1], EOS] for index in order]
    together = token_log_probabilities(model, make_pairs(sources, targets))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = token_log_probabilities(model, make_pairs([source], [target]))[0]
        torch.testing.assert_close(together[row, : len(target)], alone, rtol=1e-5, atol=1e-5)


def test_contents_of_the_padding_never_matter(model):
    batch = make_pairs()
    garbage = batch.source.ids.where(batch.source.is_token, 11)
    dirty = make_pairs()
    dirty = type(dirty)(
        Sequences(garbage, batch.source.lengths),
        Sequences(batch.target.ids.where(batch.target.is_token, 5), batch.target.lengths),
        batch.num_tokens,
        batch.num_target_tokens,
    )
    assert not torch.equal(garbage, batch.source.ids)
    clean, other = (token_log_probabilities(model, each) for each in (batch, dirty))
    assert torch.equal(clean, other)


# Causality


def test_no_word_depends_on_later_ones(model):
    batch = make_pairs([SOURCE[0]], [TARGET[1]])
    embedded = []

    def keep_gradient(module, inputs, output):
        output.retain_grad()
        embedded.append(output)

    handle = model.target_embedding.register_forward_hook(keep_gradient)
    try:
        for place in range(5):
            model.zero_grad()
            embedded.clear()
            model(batch).hidden[0, place].square().sum().backward()
            gradient = embedded[0].grad[0]
            assert gradient[place + 1 :].eq(0).all()
            assert all(gradient[earlier].ne(0).any() for earlier in range(place + 1))
    finally:
        handle.remove()


def test_every_word_depends_on_every_source_word_but_not_on_padding():
    model = make_model()
    batch = make_pairs()
    embedded = []

    def keep_gradient(module, inputs, output):
        output.retain_grad()
        embedded.append(output)

    handle = model.source_embedding.register_forward_hook(keep_gradient)
    model(batch).hidden[:, 0].pow(3).sum().backward()
    handle.remove()
    moves = embedded[0].grad.ne(0).any(-1)
    assert torch.equal(moves, batch.source.is_token)


# Packed sentences

PACKABLE = {
    "paper": {},
    "pre": {"norm_position": "pre"},
    "rms": {"norm": "rms"},
    "rotary": {"positions": "rotary"},
    "learned": {"positions": "learned"},
    "index": {"positions": "index"},
    "no positions": {"positions": "none", "attention_bias": True},
    "swiglu": {"feed_forward": "swiglu"},
    "geglu": {"feed_forward": "geglu", "norm": "rms"},
    "other dims": {"key_dim": 8, "value_dim": 24, "tied_embeddings": "target"},
}


@pytest.mark.parametrize("changes", PACKABLE.values(), ids=PACKABLE.keys())
def test_packed_sentences_give_the_loss_and_gradients_of_padded_ones(changes):
    model = make_model(**changes).double()
    assert TransformerOptions(model_dim=DIM, num_heads=HEADS, **changes).reads_packed
    step = TrainingStep(model, 0.1)
    packed = pack(flatten(SOURCE), flatten(TARGET), PAD, Capacity(128, 128, 6))
    losses, gradients = [], []
    for batch in (make_pairs(), packed):
        model.zero_grad()
        loss = step(batch)
        loss.backward()
        losses.append(loss)
        gradients.append([each.grad.clone() for each in model.parameters()])
    torch.testing.assert_close(*losses)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": "alibi"},
        {"positions": "relative"},
        {"positions": "normalised"},
        {"norm": "batch"},
        {"num_experts": 2},
        {"encoder_attention": "restricted"},
        {"decoder_attention": "feedback"},
        {"decoder_attention": "ssru"},
    ],
    ids=str,
)
def test_what_looks_beyond_its_sentence_is_not_packed(changes):
    assert not TransformerOptions(**changes).reads_packed


# Weights and the seam


def test_initial_weights_have_their_variances():
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=64, feed_forward_dim=128, num_heads=4
    )
    torch.manual_seed(0)
    model = build_model(options, Vocabulary(500, 500, PAD, EOS))
    words = model.output.words[torch.arange(500) != PAD]
    assert words.std().item() == pytest.approx(1 / 8, rel=0.03)
    assert model.output.words[PAD].eq(0).all()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            fan_in, fan_out = module.in_features, module.out_features
            bound = (6 / (fan_in + fan_out)) ** 0.5
            assert module.weight.abs().max().item() <= bound
            assert module.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.06)
            if module.bias is not None:
                assert module.bias.eq(0).all()


def test_same_seed_same_weights():
    one, other = make_model(), make_model()
    assert all(map(torch.equal, one.parameters(), other.parameters()))


def test_satisfies_the_seam(model):
    assert isinstance(model, TranslationModel)
    state = model.start(model.encode(pad_sequences(flatten(SOURCE), PAD)), 3)
    assert isinstance(state, DecoderState)
    assert model(make_pairs()).auxiliary_loss is None


# Dropout within attention and feed-forward layers


@pytest.mark.parametrize("name", ["attention_dropout", "activation_dropout"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"encoder_attention": "restricted", "decoder_attention": "restricted"},
     {"decoder_attention": "feedback"}],
    ids=["full", "restricted", "feedback"],
)  # fmt: skip
def test_dropout_works_in_training_only_and_draws_from_the_threads_generator(name, changes):
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=2, model_dim=DIM, feed_forward_dim=32,
        num_heads=HEADS, dropout=0.0, **changes,
    )  # fmt: skip
    plain, dropped = (
        build_model(each, Vocabulary(SIZE, SIZE, PAD, EOS))
        for each in (options, replace(options, **{name: 0.3}))
    )
    dropped.load_state_dict(plain.state_dict())
    batch = make_pairs()
    expected = plain(batch).hidden
    assert torch.equal(dropped.eval()(batch).hidden, plain.eval()(batch).hidden)
    dropped.train()
    state, found = torch.get_rng_state(), []
    for seed in (1, 1, 2):
        with own_random_numbers(seed):
            found.append(dropped(batch).hidden)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[0], expected)


@pytest.mark.parametrize("name", ["attention_dropout", "activation_dropout"])
def test_packed_sentences_are_dropped_in_too(name):
    options = TransformerOptions(model_dim=DIM, num_heads=HEADS, dropout=0.0, **{name: 0.3})
    assert options.reads_packed
    model = build_model(options, Vocabulary(SIZE, SIZE, PAD, EOS))
    packed = pack(flatten(SOURCE), flatten(TARGET), PAD, Capacity(128, 128, 6))
    one, other = model(packed).hidden, model(packed).hidden
    assert not torch.equal(one, other)
    model.eval()
    assert torch.equal(model(packed).hidden, model(packed).hidden)


def hidden_of(model, target):
    with torch.no_grad():
        return model(make_pairs(target=target)).hidden


def test_without_a_mask_later_words_are_seen_and_padding_is_not():
    masked, open_ = make_model(), make_model(decoder_mask=False)
    changed = [[12, EOS], [13, 14, 15, 18, EOS], [17, 18, EOS]]  # the fourth word of the second
    before, after = hidden_of(masked, TARGET), hidden_of(masked, changed)
    torch.testing.assert_close(before[1, :4], after[1, :4])
    before, after = hidden_of(open_, TARGET), hidden_of(open_, changed)
    assert (before[1, 0] - after[1, 0]).abs().max() > 1e-3
    torch.testing.assert_close(before[[0, 2]], after[[0, 2]])
    # A sentence alone, without padding, is read as in a batch.
    alone = open_(make_batch(flatten(SOURCE[2:]), flatten(TARGET[2:]), PAD)).hidden
    torch.testing.assert_close(alone[0], hidden_of(open_, TARGET)[2, :3], rtol=1e-4, atol=1e-5)

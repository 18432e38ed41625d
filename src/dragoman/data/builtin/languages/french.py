"""Surface realisation of French clauses and sentences."""

from dragoman.data.builtin.languages.french_phrases import (
    SUBJECT_PRONOUNS,
    agree_adjective,
    find_features,
    realise_circumstance,
    realise_number,
    realise_phrase,
)
from dragoman.data.builtin.lexicon.moments import (
    FRENCH_WEEKDAYS,
    Hour,
    realise_french_hour,
    realise_french_moment,
)
from dragoman.data.builtin.lexicon.verbs import HAVE, SER
from dragoman.data.builtin.lexicon.word_meanings import (
    Word,
    capitalise_first,
    make_marked_words,
    make_words,
)
from dragoman.data.builtin.meaning import (
    Age,
    Attribute,
    Clause,
    Condition,
    DayOfWeek,
    Determiner,
    Exclamation,
    Existence,
    Features,
    Fragment,
    Gap,
    HourOfDay,
    Identification,
    Linked,
    Negation,
    Nominal,
    Occupation,
    Predicate,
    Pronoun,
    Proposition,
    Question,
    Relative,
    Sentence,
    Statement,
    Tense,
    Weather,
)

_LINKS = {"and": "et", "but": "mais", "because": "parce que", "when": "quand", "if": "si"}
_DEGREES = {"very": "très", "too": "trop"}
_COMPARISONS = {"more": "plus", "less": "moins", "as": "aussi"}
_QUESTION_WORDS = {"where": "où", "when": "quand", "why": "pourquoi"}
_OBJECT_CLITICS = ("me", "te", "", "nous", "les")
_ELIDING = {"me": "m’", "te": "t’", "le": "l’", "la": "l’", "ne": "n’", "que": "qu’", "je": "j’"}
_VOWELS = frozenset("aeiouyhàâéèêëîïôöùûüœ")
# No elision before these, although their spelling suggests it.
_UNELIDED = frozenset({"huit", "onze"})


def _word(text: str, *nodes: str) -> Word:
    return Word(text, frozenset(nodes), prevocalic=_ELIDING.get(text, ""))


def _begins_with_vowel(text: str) -> bool:
    lowered = text.lower()
    return lowered[0] in _VOWELS and lowered not in _UNELIDED


def _elide_and_contract(words: list[Word]) -> list[Word]:
    """Apply elision and prevocalic forms, then contractions such as “de le” to “du”."""
    finished: list[Word] = []
    for word in reversed(words):
        following = finished[-1] if finished else None
        if following is not None:
            if word.prevocalic and _begins_with_vowel(following.text):
                word.text = word.prevocalic
            elif word.text == "si" and following.text in ("il", "ils"):
                word.text = "s’"
            elif word.text in ("de", "à") and following.article:
                merged = {
                    ("de", "le"): "du",
                    ("de", "les"): "des",
                    ("à", "le"): "au",
                    ("à", "les"): "aux",
                }.get((word.text, following.text))
                if merged:
                    finished[-1] = Word(merged, word.nodes | following.nodes)
                    continue
        finished.append(word)
    finished.reverse()
    return finished


def _realise_clitics(clause: Clause, path: str) -> list[Word]:
    """Realise the clitic pronouns in the order me/te/nous, le/la/les, leur."""
    ranked: list[tuple[int, Word]] = []
    if isinstance(clause.recipient, Pronoun):
        index = find_features(clause.recipient).form_index
        text = "leur" if index == 4 else "lui" if index == 2 else _OBJECT_CLITICS[index]
        rank = 3 if index in (2, 4) else 1
        ranked.append((rank, _word(text, f"{path}/recipient")))
    if isinstance(clause.object, Pronoun):
        features = find_features(clause.object)
        index = features.form_index
        text = _OBJECT_CLITICS[index] or ("la" if features.feminine else "le")
        ranked.append((2 if index in (2, 4) else 1, _word(text, f"{path}/object")))
    ranked.sort(key=lambda pair: pair[0])
    return [word for _, word in ranked]


def _agree_participle(participle: str, features: Features | None) -> str:
    if features is None:
        return participle
    form = participle + ("e" if features.feminine else "")
    return form + ("s" if features.plural and not form.endswith("s") else "")


def _conjugate(clause: Clause, features: Features, path: str) -> tuple[Word, list[Word]]:
    """Return the finite verb of the clause, and the participle or infinitive after it."""
    node = f"{path}/verb"
    index = features.form_index
    head = clause.modal or clause.verb
    tense = clause.tense
    if tense is Tense.PAST and head.is_stative:
        tense = Tense.IMPERFECT
    head_node = f"{path}/modal" if clause.modal else node
    rest: list[Word] = []
    if tense is Tense.PAST:
        with_be = head.french.with_be
        finite = (SER if with_be else HAVE).french.present[index]
        agreed: Features | None = features if with_be else None
        if not with_be and isinstance(clause.object, Pronoun | Gap):
            agreed = find_features(clause.object)
        rest.append(Word(_agree_participle(head.french.participle, agreed), frozenset({node})))
    elif tense is Tense.IMPERFECT:
        finite = head.french.imperfect[index]
    elif tense is Tense.FUTURE:
        finite = head.french.future[index]
    else:
        finite = head.french.present[index]
    if clause.modal:
        rest += [
            *_realise_clitics(clause, path),
            Word(clause.verb.french.infinitive, frozenset({node})),
        ]
    return Word(finite, frozenset({head_node})), rest


def _realise_verb_group(clause: Clause, features: Features, path: str) -> list[Word]:
    """Realise negation, clitics, verb, adverb, and participle or infinitive."""
    finite, rest = _conjugate(clause, features, path)
    words: list[Word] = []
    if clause.is_negated:
        words.append(_word("ne", f"{path}/not"))
    if not clause.modal:
        words += _realise_clitics(clause, path)
    words.append(finite)
    if clause.is_negated:
        denial = "pas" if clause.negation is Negation.NOT else "jamais"
        words += make_words(denial, f"{path}/not")
    if clause.frequency:
        words += make_marked_words(clause.frequency.french, f"{path}/frequency")
    words += rest
    if clause.verb.french.particle:
        words += make_words(clause.verb.french.particle, f"{path}/verb")
    return words


def _realise_predicate(predicate: Predicate, features: Features, path: str) -> list[Word]:
    match predicate:
        case Attribute(quality, comparison, standard):
            forms = quality.adjective.french
            words = make_words(_DEGREES.get(quality.degree, ""), f"{path}/degree")
            if comparison == "more" and quality.adjective.french_comparative[0]:
                forms = quality.adjective.french_comparative
                words = make_words(agree_adjective(forms, features), f"{path}/more", f"{path}/adj")
            else:
                words += make_words(_COMPARISONS.get(comparison, ""), f"{path}/more")
                words += make_words(agree_adjective(forms, features), f"{path}/adj")
            if standard is not None:
                words.append(_word("que", f"{path}/than"))
                words += realise_phrase(standard, f"{path}/standard", _realise_relative)
            return words
        case Occupation(noun):
            return make_words(noun.french.singular, f"{path}/noun")
        case Condition():
            words = make_words("très" if predicate.strong else "", f"{path}/degree")
            return words + make_words(predicate.french, f"{path}/condition")
        case Age(years):
            words = realise_number(years, f"{path}/number", feminine=False)
            return words + make_words("ans", f"{path}/years")


def _realise_object(clause: Clause, path: str) -> list[Word]:
    """Realise the objects that are not clitics, each with its preposition."""
    words: list[Word] = []
    if clause.object is not None and not isinstance(clause.object, Pronoun | Gap):
        preposition = clause.verb.french.preposition
        if preposition:
            prevocalic = "d’" if preposition == "de" else ""
            words.append(Word(preposition, frozenset({f"{path}/verb"}), prevocalic))
        bare = clause.is_negated and not preposition
        words += realise_phrase(
            clause.object,
            f"{path}/object",
            _realise_relative,
            without_partitive=bare,
            after_de=preposition == "de",
        )
    if clause.recipient is not None and not isinstance(clause.recipient, Pronoun):
        words.append(Word("à", frozenset({f"{path}/to"})))
        words += realise_phrase(clause.recipient, f"{path}/recipient", _realise_relative)
    return words


def _realise_clause(clause: Clause, path: str) -> list[Word]:
    words: list[Word] = []
    time = realise_french_moment(clause.time, f"{path}/time") if clause.time else []
    if clause.time_first:
        words += [*time, Word(",", frozenset({f"{path}/comma"}))]
    features = find_features(clause.subject)
    if isinstance(clause.subject, Pronoun):
        if not clause.subject_omitted:
            words.append(_word(SUBJECT_PRONOUNS[features.form_index], f"{path}/subject"))
            if features.feminine and features.person == 3:
                words[-1].text = "elles" if features.plural else "elle"
    elif not isinstance(clause.subject, Gap) and not clause.subject_omitted:
        words += realise_phrase(clause.subject, f"{path}/subject", _realise_relative)
    words += _realise_verb_group(clause, features, path)
    words += _realise_object(clause, path)
    if clause.predicate is not None:
        words += _realise_predicate(clause.predicate, features, f"{path}/predicate")
    if clause.manner:
        words += make_marked_words(clause.manner.french, f"{path}/manner")
    for index, circumstance in enumerate(clause.circumstances):
        words += realise_circumstance(circumstance, f"{path}/{index}", _realise_relative)
    if clause.content is not None:
        words.append(_word("que", f"{path}/that"))
        words += _realise_proposition(clause.content, f"{path}/content")
    if not clause.time_first:
        words += time
    return words


def _realise_relative(relative: Relative, path: str) -> list[Word]:
    opening = {"subject": "qui", "object": "que", "place": "où"}[relative.role]
    return [_word(opening, f"{path}/opening"), *_realise_clause(relative.clause, path)]


def _realise_weather(weather: Weather, path: str) -> list[Word]:
    index = {Tense.PRESENT: 0, Tense.FUTURE: 2}.get(weather.tense, 1)
    nodes = [f"{path}/verb"] + ([] if weather.kind.french_word else [f"{path}/sky"])
    words = make_words("il", f"{path}/subject")
    words += [_word("ne", f"{path}/not")] if weather.negated else []
    words += make_words(weather.kind.french[index], *nodes)
    words += make_words("pas", f"{path}/not") if weather.negated else []
    words += make_words(weather.kind.french_word, f"{path}/sky")
    if weather.time:
        time = realise_french_moment(weather.time, f"{path}/time")
        comma = Word(",", frozenset({f"{path}/comma"}))
        words = [*time, comma, *words] if weather.time_first else words + time
    return words


def _realise_existence(existence: Existence, path: str) -> list[Word]:
    forms = {Tense.PRESENT: "a", Tense.FUTURE: "aura"}
    words = make_words("il", f"{path}/there")
    words += [_word("ne", f"{path}/not")] if existence.negated else []
    words += make_words("y", f"{path}/there")
    words += make_words(forms.get(existence.tense, "avait"), f"{path}/verb")
    words += make_words("pas", f"{path}/not") if existence.negated else []
    words += realise_phrase(
        existence.phrase, f"{path}/phrase", _realise_relative, without_partitive=existence.negated
    )
    for index, circumstance in enumerate(existence.circumstances):
        words += realise_circumstance(circumstance, f"{path}/{index}", _realise_relative)
    return words


def _realise_identification(identification: Identification, path: str) -> list[Word]:
    if identification.negated:
        words = [_word("ce", f"{path}/it"), _word("ne", f"{path}/not")]
    else:
        words = [Word("c’", frozenset({f"{path}/it"}))]
    words += make_words("est", f"{path}/verb")
    words += make_words("pas", f"{path}/not") if identification.negated else []
    return words + realise_phrase(identification.phrase, f"{path}/phrase", _realise_relative)


def _realise_proposition(proposition: Proposition, path: str) -> list[Word]:
    match proposition:
        case Clause():
            return _realise_clause(proposition, path)
        case Weather():
            return _realise_weather(proposition, path)
        case Existence():
            return _realise_existence(proposition, path)
        case Identification():
            return _realise_identification(proposition, path)
        case HourOfDay(moment):
            assert isinstance(moment, Hour)
            words = make_words("il", f"{path}/it") + make_words("est", f"{path}/verb")
            return words + realise_french_hour(moment, f"{path}/hour")
        case DayOfWeek(weekday):
            words = make_words("aujourd’hui", f"{path}/today")
            words += [Word(",", frozenset()), Word("c’", frozenset({f"{path}/verb"}))]
            words += make_words("est", f"{path}/verb")
            return words + make_words(FRENCH_WEEKDAYS[weekday], f"{path}/weekday")


def _realise_linked(linked: Linked, path: str) -> list[Word]:
    words: list[Word] = []
    for part in _LINKS.get(linked.link, "").split():
        words.append(_word(part, f"{path}/link"))
    return words + _realise_proposition(linked.proposition, path)


def _realise_statement(statement: Statement) -> list[Word]:
    words: list[Word] = []
    if statement.opening:
        words += [*_realise_linked(statement.opening, "opening"), Word(",", frozenset({"comma"}))]
    for index, part in enumerate(statement.parts):
        if part.link == "but":
            words.append(Word(",", frozenset({f"{index}/comma"})))
        words += _realise_linked(part, str(index))
    return words


def _realise_question(question: Question) -> list[Word]:
    if question.word == "who":
        return make_words("qui", "question") + _realise_clause(question.clause, "0")
    words: list[Word] = []
    if question.word == "what":
        words.append(Word("qu’", frozenset({"question"})))
    elif question.word:
        words += make_words(_QUESTION_WORDS[question.word], "question")
    words += [_word("est-ce", "asking"), _word("que", "asking")]
    return words + _realise_clause(question.clause, "0")


def _realise_exclamation(exclamation: Exclamation) -> list[Word]:
    noun = exclamation.noun
    phrase = Nominal(noun, False, Determiner.DEFINITE, qualities=(exclamation.quality,))
    words = realise_phrase(phrase, "0", _realise_relative)
    text = "quelle" if noun.french.feminine else "quel"
    return [Word(text, frozenset({"question"})), *words[1:]]


def realise_french(sentence: Sentence) -> list[Word]:
    """Realise a sentence in French."""
    match sentence.body:
        case Statement():
            words = _realise_statement(sentence.body)
        case Question():
            words = _realise_question(sentence.body)
        case Exclamation():
            words = _realise_exclamation(sentence.body)
        case Fragment(phrase):
            words = realise_phrase(phrase, "0", _realise_relative)
    words = _elide_and_contract(words)
    if sentence.mark:
        words.append(Word(sentence.mark, frozenset({"mark"})))
        capitalise_first(words)
    return words

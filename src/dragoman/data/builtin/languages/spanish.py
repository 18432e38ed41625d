"""Surface realisation of Spanish clauses and sentences."""

from dragoman.data.builtin.languages.spanish_phrases import (
    SUBJECT_PRONOUNS,
    agree,
    find_features,
    realise_circumstance,
    realise_number,
    realise_phrase,
)
from dragoman.data.builtin.lexicon.moments import (
    SPANISH_WEEKDAYS,
    Hour,
    realise_spanish_hour,
    realise_spanish_moment,
)
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
    Exclamation,
    Existence,
    Features,
    Fragment,
    Gap,
    HourOfDay,
    Identification,
    Joined,
    Linked,
    Negation,
    Nominal,
    NounPhrase,
    Occupation,
    Person,
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

_LINKS = {"and": "y", "but": "pero", "because": "porque", "when": "cuando", "if": "si"}
_DEGREES = {"very": "muy", "too": "demasiado"}
_COMPARISONS = {"more": "más", "less": "menos", "as": "tan"}
_QUESTION_WORDS = {
    "where": "dónde",
    "when": "cuándo",
    "why": "por qué",
    "who": "quién",
    "what": "qué",
}
_OPENING_MARKS = {"?": "¿", "!": "¡"}
_RECIPIENT_CLITICS = ("me", "te", "le", "nos", "les")
# Feminine nouns that begin with a stressed “a” take “el”.
_STRESSED_A = frozenset({"agua"})


def _contract(words: list[Word]) -> list[Word]:
    """Contract “a el” and “de el”, and change “y” to “e” before an i sound."""
    finished: list[Word] = []
    for word in reversed(words):
        following = finished[-1] if finished else None
        if following is not None:
            initial = following.text.lower()
            if word.article and word.text == "la" and initial in _STRESSED_A:
                word.text = "el"
            elif following.article and following.text == "el" and word.text in ("a", "de"):
                merged = "al" if word.text == "a" else "del"
                finished[-1] = Word(merged, word.nodes | following.nodes)
                continue
            elif word.text == "y" and initial.startswith(("i", "hi")):
                word.text = "e"
        finished.append(word)
    finished.reverse()
    return finished


def _realise_clitics(clause: Clause, path: str) -> list[Word]:
    """Realise the clitics: the recipient (also if repeated later as a noun), then the object."""
    words: list[Word] = []
    has_object = isinstance(clause.object, Pronoun)
    if clause.recipient is not None and not isinstance(clause.recipient, Gap):
        index = find_features(clause.recipient).form_index
        text = _RECIPIENT_CLITICS[index]
        if has_object and index in (2, 4):
            text = "se"
        node = f"{path}/recipient" if isinstance(clause.recipient, Pronoun) else f"{path}/to"
        words += make_words(text, node)
    if isinstance(clause.object, Pronoun):
        features = find_features(clause.object)
        if features.person == 3:
            text = ("lo", "la", "los", "las")[2 * features.plural + features.feminine]
        else:
            text = _RECIPIENT_CLITICS[features.form_index]
        words += make_words(text, f"{path}/object")
    return words


def _conjugate(clause: Clause, features: Features) -> tuple[str, bool]:
    """Return the finite verb, and whether it is an imperfect, ambiguous between yo and él."""
    head = clause.modal or clause.verb
    index = features.form_index
    match clause.tense:
        case Tense.PRESENT:
            return head.spanish.present[index], False
        case Tense.FUTURE:
            return head.spanish.future[index], False
        case Tense.PAST if not head.is_stative:
            return head.spanish.past[index], False
        case _:
            return head.spanish.imperfect[index], True


def _find_speaker(subject: NounPhrase) -> Features | None:
    """Return the features of a person subject that a following pronoun may repeat."""
    if isinstance(subject, Pronoun | Person):
        return find_features(subject)
    if isinstance(subject, Joined) or (isinstance(subject, Nominal) and subject.noun.is_person):
        return find_features(subject)
    return None


def _repeats_several(subject: NounPhrase, previous: Features | None) -> bool:
    """Tell whether “they” refers to several persons of the clause before."""
    if previous is None or not isinstance(subject, Pronoun):
        return False
    return subject.person == previous.person == 3 and subject.plural and previous.plural


def _realise_subject(
    clause: Clause, path: str, previous: Features | None, *, imperfect: bool
) -> list[Word]:
    """Realise the subject; a pronoun is dropped where the verb or the context determines it."""
    subject = clause.subject
    if clause.subject_omitted or isinstance(subject, Gap):
        return []
    if not isinstance(subject, Pronoun):
        return realise_phrase(subject, f"{path}/subject", _realise_relative)
    features = find_features(subject)
    if features == previous or _repeats_several(subject, previous):
        return []
    if features.person == 3 or (imperfect and features.form_index == 0):
        text = SUBJECT_PRONOUNS[features.form_index]
        if features.feminine and features.person == 3:
            text = "ellas" if features.plural else "ella"
        return make_words(text, f"{path}/subject")
    return []


def _realise_predicate(predicate: Predicate, features: Features, path: str) -> list[Word]:
    match predicate:
        case Attribute(quality, comparison, standard):
            adjective = quality.adjective
            words = make_words(_DEGREES.get(quality.degree, ""), f"{path}/degree")
            if comparison == "more" and adjective.spanish_comparative:
                form = adjective.spanish_comparative + ("es" if features.plural else "")
                words += make_words(form, f"{path}/more", f"{path}/adj")
            else:
                words += make_words(_COMPARISONS.get(comparison, ""), f"{path}/more")
                words += make_words(agree(adjective.spanish, features), f"{path}/adj")
            if standard is not None:
                words += make_words("como" if comparison == "as" else "que", f"{path}/than")
                words += realise_phrase(standard, f"{path}/standard", _realise_relative)
            return words
        case Occupation(noun):
            return make_words(noun.spanish.singular, f"{path}/noun")
        case Condition():
            much = "mucha" if predicate.spanish_feminine else "mucho"
            words = make_words(much if predicate.strong else "", f"{path}/degree")
            return words + make_words(predicate.spanish, f"{path}/condition")
        case Age(years):
            words = realise_number(years, f"{path}/number", feminine=False)
            return words + make_words("años", f"{path}/years")


def _realise_objects(clause: Clause, path: str) -> list[Word]:
    words: list[Word] = []
    if clause.object is not None and not isinstance(clause.object, Pronoun | Gap):
        preposition = clause.verb.spanish.preposition
        words += make_words(preposition, f"{path}/verb")
        personal = not preposition and "nopersonal" not in clause.verb.traits
        words += realise_phrase(
            clause.object,
            f"{path}/object",
            _realise_relative,
            denied=clause.is_negated,
            marker="a" if personal else "",
        )
    if clause.recipient is not None and not isinstance(clause.recipient, Pronoun):
        words += make_words("a", f"{path}/to")
        words += realise_phrase(clause.recipient, f"{path}/recipient", _realise_relative)
    return words


def _precedes_subject(predicate: Predicate | None) -> bool:
    """Tell whether the predicate precedes the subject in a question: “¿es nueva la casa?”."""
    if isinstance(predicate, Attribute):
        return predicate.standard is None
    return predicate is not None


def _realise_clause(
    clause: Clause, path: str, previous: Features | None = None, *, asked: bool = False
) -> list[Word]:
    words: list[Word] = []
    time = realise_spanish_moment(clause.time, f"{path}/time") if clause.time else []
    if clause.time_first:
        words += [*time, Word(",", frozenset({f"{path}/comma"}))]
    features = find_features(clause.subject)
    if _repeats_several(clause.subject, previous):
        # “they” takes the gender of its antecedents in the clause before
        features = previous or features
    finite, imperfect = _conjugate(clause, features)
    subject = _realise_subject(clause, path, previous, imperfect=imperfect)
    group: list[Word] = []
    if clause.negation is Negation.NOT:
        group += make_words("no", f"{path}/not")
    elif clause.negation is Negation.NEVER:
        group += make_words("nunca", f"{path}/not")
    if clause.frequency:
        group += make_marked_words(clause.frequency.spanish, f"{path}/frequency")
    group += _realise_clitics(clause, path)
    nodes = [f"{path}/modal" if clause.modal else f"{path}/verb"]
    if not subject:
        nodes.append(f"{path}/subject")
    group += make_words(finite, *nodes)
    infinitive = clause.verb.spanish.infinitive if clause.modal else ""
    rest = make_words(infinitive, f"{path}/verb")
    if clause.object is None or isinstance(clause.object, Pronoun | Gap):
        # verbs stay together in a question: “¿dónde puede hablar Jane?”
        group, rest = group + rest, []
    rest += _realise_objects(clause, path)
    if clause.predicate is not None:
        rest += _realise_predicate(clause.predicate, features, f"{path}/predicate")
    if asked and _precedes_subject(clause.predicate):
        rest, subject = [], rest + subject
    words += [*group, *subject] if asked else [*subject, *group]
    words += rest
    if clause.manner:
        words += make_marked_words(clause.manner.spanish, f"{path}/manner")
    for index, circumstance in enumerate(clause.circumstances):
        words += realise_circumstance(circumstance, f"{path}/{index}", _realise_relative)
    if clause.content is not None:
        words += make_words("que", f"{path}/that")
        speaker = _find_speaker(clause.subject)
        words += _realise_proposition(clause.content, f"{path}/content", speaker)
    return words if clause.time_first else words + time


def _realise_relative(relative: Relative, path: str) -> list[Word]:
    opening = "donde" if relative.role == "place" else "que"
    return make_words(opening, f"{path}/opening") + _realise_clause(relative.clause, path)


def _realise_weather(weather: Weather, path: str) -> list[Word]:
    index = {Tense.PRESENT: 0, Tense.FUTURE: 2}.get(weather.tense, 1)
    words = make_words("no", f"{path}/not") if weather.negated else []
    nodes = [f"{path}/subject", f"{path}/verb"]
    nodes += [] if weather.kind.spanish_word else [f"{path}/sky"]
    words += make_words(weather.kind.spanish[index], *nodes)
    words += make_words(weather.kind.spanish_word, f"{path}/sky")
    if weather.time:
        time = realise_spanish_moment(weather.time, f"{path}/time")
        comma = Word(",", frozenset({f"{path}/comma"}))
        words = [*time, comma, *words] if weather.time_first else words + time
    return words


def _realise_existence(existence: Existence, path: str) -> list[Word]:
    forms = {Tense.PRESENT: "hay", Tense.FUTURE: "habrá"}
    words = make_words("no", f"{path}/not") if existence.negated else []
    words += make_words(forms.get(existence.tense, "había"), f"{path}/there", f"{path}/verb")
    words += realise_phrase(
        existence.phrase, f"{path}/phrase", _realise_relative, denied=existence.negated
    )
    for index, circumstance in enumerate(existence.circumstances):
        words += realise_circumstance(circumstance, f"{path}/{index}", _realise_relative)
    return words


def _realise_proposition(
    proposition: Proposition, path: str, previous: Features | None = None
) -> list[Word]:
    match proposition:
        case Clause():
            return _realise_clause(proposition, path, previous)
        case Weather():
            return _realise_weather(proposition, path)
        case Existence():
            return _realise_existence(proposition, path)
        case Identification():
            words = make_words("no", f"{path}/not") if proposition.negated else []
            words += make_words("es", f"{path}/it", f"{path}/verb")
            return words + realise_phrase(proposition.phrase, f"{path}/phrase", _realise_relative)
        case HourOfDay(moment):
            assert isinstance(moment, Hour)
            verb = "es" if moment.hour == 1 else "son"
            words = make_words(verb, f"{path}/it", f"{path}/verb")
            return words + realise_spanish_hour(moment, f"{path}/hour")
        case DayOfWeek(weekday):
            words = make_words("hoy", f"{path}/today") + make_words("es", f"{path}/verb")
            return words + make_words(SPANISH_WEEKDAYS[weekday], f"{path}/weekday")


def _realise_linked(linked: Linked, path: str, previous: Features | None) -> list[Word]:
    words = make_words(_LINKS.get(linked.link, ""), f"{path}/link")
    return words + _realise_proposition(linked.proposition, path, previous)


def _realise_statement(statement: Statement) -> list[Word]:
    words: list[Word] = []
    previous: Features | None = None
    parts = [(str(index), part) for index, part in enumerate(statement.parts)]
    if statement.opening:
        parts.insert(0, ("opening", statement.opening))
    for path, part in parts:
        if part.link == "but":
            words.append(Word(",", frozenset({f"{path}/comma"})))
        words += _realise_linked(part, path, previous)
        if path == "opening":
            words.append(Word(",", frozenset({"comma"})))
        proposition = part.proposition
        previous = _find_speaker(proposition.subject) if isinstance(proposition, Clause) else None
    return words


def _realise_exclamation(exclamation: Exclamation) -> list[Word]:
    noun = exclamation.noun.spanish
    adjective = exclamation.quality.adjective
    words = make_words("qué", "question") + make_words(noun.singular, "0/noun")
    words += make_words("tan", "question")
    form = agree(adjective.spanish, Features(3, False, noun.feminine))
    return words + make_words(form, "0/adj0")


def realise_spanish(sentence: Sentence) -> list[Word]:
    """Realise a sentence in Spanish."""
    match sentence.body:
        case Statement():
            words = _realise_statement(sentence.body)
        case Question(word, clause):
            words = make_words(_QUESTION_WORDS.get(word, ""), "question")
            words += _realise_clause(clause, "0", asked=True)
        case Exclamation():
            words = _realise_exclamation(sentence.body)
        case Fragment(phrase):
            words = realise_phrase(phrase, "0", _realise_relative)
    words = _contract(words)
    if sentence.mark:
        if sentence.mark in _OPENING_MARKS:
            words.insert(0, Word(_OPENING_MARKS[sentence.mark], frozenset({"mark"})))
        words.append(Word(sentence.mark, frozenset({"mark"})))
        capitalise_first(words)
    return words

"""Surface realisation of English clauses and sentences."""

from itertools import pairwise

from dragoman.data.builtin.languages.english_phrases import (
    find_features,
    realise_circumstance,
    realise_number,
    realise_object_pronoun,
    realise_phrase,
    realise_subject,
)
from dragoman.data.builtin.lexicon.entries import Verb
from dragoman.data.builtin.lexicon.moments import (
    ENGLISH_WEEKDAYS,
    Hour,
    realise_english_hour,
    realise_english_moment,
)
from dragoman.data.builtin.lexicon.verbs import CAN, MUST
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
    Linked,
    Negation,
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

_BE_PRESENT = ("am", "are", "is", "are", "are")
_BE_PAST = ("was", "were", "was", "were", "were")
_VOWELS = frozenset("aeiou")
_CONSONANT_SOUNDS = ("university", "euro", "one")


def _choose_articles(words: list[Word]) -> list[Word]:
    """Turn “a” into “an” before a vowel sound."""
    for word, following in pairwise(words):
        initial = following.text.lower()
        if word.text == "a" and initial[0] in _VOWELS and initial not in _CONSONANT_SOUNDS:
            word.text = "an"
    return words


def _conjugate(verb: Verb, tense: Tense, features: Features, *, support: bool) -> tuple[str, str]:
    """Return the auxiliary, if any, and the main verb; `support` forces an auxiliary."""
    index = features.form_index
    forms = verb.english
    if tense is Tense.FUTURE:
        return "will", {CAN: "be able to", MUST: "have to"}.get(verb, forms.base)
    if verb is CAN:
        return ("can" if tense is Tense.PRESENT else "could"), ""
    if verb is MUST:
        if tense is Tense.PRESENT:
            return "must", ""
        return ("did", "have to") if support else ("", "had to")
    if forms.is_be:
        return (_BE_PRESENT if tense is Tense.PRESENT else _BE_PAST)[index], ""
    if tense is Tense.IMPERFECT:
        return _BE_PAST[index], forms.progressive
    if support:
        if tense is Tense.PAST:
            return "did", forms.base
        return ("does" if index == 2 else "do"), forms.base
    if tense is Tense.PAST:
        return "", forms.past
    return "", forms.third if index == 2 else forms.base


def _realise_verb_group(
    clause: Clause, features: Features, path: str, *, asked: bool
) -> tuple[list[Word], list[Word]]:
    """Realise auxiliary, negation, adverb, main verb and particle."""
    head = clause.modal or clause.verb
    head_node = f"{path}/modal" if clause.modal else f"{path}/verb"
    denied = clause.negation is Negation.NOT
    auxiliary, main = _conjugate(head, clause.tense, features, support=asked or denied)
    front = make_words(auxiliary, head_node, *(["asking"] if asked else []))
    words: list[Word] = []
    if denied and auxiliary == "can" and not asked:
        front = make_words("cannot", head_node, f"{path}/not")
    elif denied:
        words += make_words("not", f"{path}/not")
    elif clause.negation is Negation.NEVER:
        words += make_words("never", f"{path}/not")
    if clause.frequency:
        words += make_marked_words(clause.frequency.english, f"{path}/frequency")
    words += make_words(main, head_node)
    if clause.modal:
        words += make_words(clause.modal.english.particle, head_node)
        words += make_words(clause.verb.english.base, f"{path}/verb")
    words += make_words(clause.verb.english.particle, f"{path}/verb")
    return front, words


def _realise_predicate(predicate: Predicate, path: str) -> list[Word]:
    match predicate:
        case Attribute(quality, comparison, standard):
            adjective = quality.adjective
            words = make_words(quality.degree, f"{path}/degree")
            if comparison == "more" and adjective.english_comparative:
                words += make_words(adjective.english_comparative, f"{path}/more", f"{path}/adj")
            else:
                words += make_words(comparison, f"{path}/more")
                words += make_words(adjective.english, f"{path}/adj")
            if standard is not None:
                words += make_words("as" if comparison == "as" else "than", f"{path}/than")
                words += realise_phrase(standard, f"{path}/standard", _realise_relative)
            return words
        case Occupation(noun):
            return make_words(f"a {noun.english.singular}", f"{path}/noun")
        case Condition():
            words = make_words("very" if predicate.strong else "", f"{path}/degree")
            return words + make_words(predicate.english, f"{path}/condition")
        case Age(years):
            words = realise_number(years, f"{path}/number")
            return words + make_words("years old", f"{path}/years")


def _realise_objects(clause: Clause, path: str) -> list[Word]:
    """Realise the objects: “me a book”, “it to me” or “a book to Paul”."""
    direct: list[Word] = []
    if isinstance(clause.object, Pronoun):
        direct = realise_object_pronoun(clause.object, f"{path}/object")
    elif clause.object is not None and not isinstance(clause.object, Gap):
        direct = realise_phrase(
            clause.object, f"{path}/object", _realise_relative, denied=clause.is_negated
        )
    if clause.recipient is None:
        return direct
    if not isinstance(clause.recipient, Pronoun):
        recipient = realise_phrase(clause.recipient, f"{path}/recipient", _realise_relative)
        return [*direct, *make_words("to", f"{path}/to"), *recipient]
    recipient = realise_object_pronoun(clause.recipient, f"{path}/recipient")
    if direct and not isinstance(clause.object, Pronoun) and clause.verb.english.base != "explain":
        return recipient + direct
    return [*direct, *make_words("to", f"{path}/recipient"), *recipient]


def _realise_clause(clause: Clause, path: str, *, asked: bool = False) -> list[Word]:
    words: list[Word] = []
    time = realise_english_moment(clause.time, f"{path}/time") if clause.time else []
    if clause.time_first:
        words += [*time, Word(",", frozenset({f"{path}/comma"}))]
    features = find_features(clause.subject)
    subject: list[Word] = []
    if not clause.subject_omitted:
        subject = realise_subject(clause.subject, f"{path}/subject", _realise_relative)
    front, group = _realise_verb_group(clause, features, path, asked=asked)
    words += [*front, *subject, *group] if asked else [*subject, *front, *group]
    words += _realise_objects(clause, path)
    if clause.predicate is not None:
        words += _realise_predicate(clause.predicate, f"{path}/predicate")
    if clause.manner:
        words += make_marked_words(clause.manner.english, f"{path}/manner")
    for index, circumstance in enumerate(clause.circumstances):
        words += realise_circumstance(circumstance, f"{path}/{index}", _realise_relative)
    if clause.content is not None:
        words += make_words("that", f"{path}/that")
        words += _realise_proposition(clause.content, f"{path}/content")
    if not clause.time_first:
        words += time
    return words


def _realise_relative(relative: Relative, path: str) -> list[Word]:
    opening = "where" if relative.role == "place" else "that"
    if relative.role == "subject":
        subject = relative.clause.subject
        if isinstance(subject, Gap) and subject.noun is not None and subject.noun.is_person:
            opening = "who"
    return make_words(opening, f"{path}/opening") + _realise_clause(relative.clause, path)


def _realise_weather(weather: Weather, path: str) -> list[Word]:
    index = {Tense.PRESENT: 0, Tense.FUTURE: 2}.get(weather.tense, 1)
    words = make_words("it", f"{path}/subject")
    words += make_words(weather.kind.english[index], f"{path}/verb")
    words += make_words("not", f"{path}/not") if weather.negated else []
    words += make_words(weather.kind.english_word[index], f"{path}/sky")
    if weather.time:
        time = realise_english_moment(weather.time, f"{path}/time")
        comma = Word(",", frozenset({f"{path}/comma"}))
        words = [*time, comma, *words] if weather.time_first else words + time
    return words


def _realise_existence(existence: Existence, path: str) -> list[Word]:
    plural = existence.phrase.plural
    past = "were" if plural else "was"
    forms = {Tense.PRESENT: "are" if plural else "is", Tense.FUTURE: "will be"}
    words = make_words("there", f"{path}/there")
    words += make_words(forms.get(existence.tense, past), f"{path}/verb")
    phrase = realise_phrase(existence.phrase, f"{path}/phrase", _realise_relative)
    if existence.negated:
        # “no” replaces “some”: it expresses both negation and determiner
        words += make_words("no", f"{path}/not", f"{path}/phrase/det")
        phrase = phrase[1:]
    words += phrase
    for index, circumstance in enumerate(existence.circumstances):
        words += realise_circumstance(circumstance, f"{path}/{index}", _realise_relative)
    return words


def _realise_proposition(proposition: Proposition, path: str) -> list[Word]:
    match proposition:
        case Clause():
            return _realise_clause(proposition, path)
        case Weather():
            return _realise_weather(proposition, path)
        case Existence():
            return _realise_existence(proposition, path)
        case Identification():
            words = make_words("it", f"{path}/it") + make_words("is", f"{path}/verb")
            words += make_words("not", f"{path}/not") if proposition.negated else []
            return words + realise_phrase(proposition.phrase, f"{path}/phrase", _realise_relative)
        case HourOfDay(moment):
            assert isinstance(moment, Hour)
            words = make_words("it", f"{path}/it") + make_words("is", f"{path}/verb")
            return words + realise_english_hour(moment, f"{path}/hour")
        case DayOfWeek(weekday):
            words = make_words("today", f"{path}/today") + make_words("is", f"{path}/verb")
            return words + make_words(ENGLISH_WEEKDAYS[weekday], f"{path}/weekday")


def _realise_linked(linked: Linked, path: str) -> list[Word]:
    return make_words(linked.link, f"{path}/link") + _realise_proposition(linked.proposition, path)


def _realise_statement(statement: Statement) -> list[Word]:
    words: list[Word] = []
    if statement.opening:
        words += [*_realise_linked(statement.opening, "opening"), Word(",", frozenset({"comma"}))]
    for index, part in enumerate(statement.parts):
        if part.link == "but":
            words.append(Word(",", frozenset({f"{index}/comma"})))
        words += _realise_linked(part, str(index))
    return words


def realise_english(sentence: Sentence) -> list[Word]:
    """Realise a sentence in English."""
    match sentence.body:
        case Statement():
            words = _realise_statement(sentence.body)
        case Question(word, clause):
            words = make_words(word, "question")
            words += _realise_clause(clause, "0", asked=word != "who")
        case Exclamation(noun, quality):
            words = make_words("what", "question") + make_words("a", "question")
            words += make_words(quality.degree, "0/degree0")
            words += make_words(quality.adjective.english, "0/adj0")
            words += make_words(noun.english.singular, "0/noun")
        case Fragment(phrase):
            words = realise_phrase(phrase, "0", _realise_relative)
    words = _choose_articles(words)
    if sentence.mark:
        words.append(Word(sentence.mark, frozenset({"mark"})))
        capitalise_first(words)
    return words

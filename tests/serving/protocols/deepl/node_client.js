// Calls DeepL's client as programs do, and prints what it gives.
const deepl = require('deepl-node');
const [url, output] = process.argv.slice(2);
const client = new deepl.DeepLClient('any key', { serverUrl: url, maxRetries: 0 });
const message = (call) => call.then(() => null, (error) => error.message);

(async () => {
    const found = {};
    const texts = await client.translateText(['The old dog.', 'A tree.'], 'en', 'fr');
    found.texts = texts.map((each) => each.text);
    const back = await client.translateText('Le vieux chien.', null, 'en-GB');
    found.detected = back.detectedSourceLang;
    const html = { tagHandling: 'html' };
    found.tags = (await client.translateText('A <b>dog</b>.', 'en', 'fr', html)).text;
    found.targets = (await client.getTargetLanguages()).map((each) => each.code);
    found.usage = (await client.getUsage()).character.count;
    const entries = (terms) => new deepl.GlossaryEntries({ entries: terms });
    const dictionaries = [
        { sourceLangCode: 'en', targetLangCode: 'fr', entries: entries({ dog: 'jardin' }) },
        { sourceLangCode: 'fr', targetLangCode: 'en', entries: entries({ chien: 'garden' }) },
    ];
    const made = await client.createMultilingualGlossary('mine', dictionaries);
    found.dictionaries = made.dictionaries.map((each) => [each.sourceLangCode, each.entryCount]);
    const glossary = { glossary: made };
    found.term = (await client.translateText('The dog.', 'en', 'fr', glossary)).text;
    const more = { sourceLangCode: 'en', targetLangCode: 'fr', entries: entries({ tree: 'chien' }) };
    const edited = await client.updateMultilingualGlossaryDictionary(made, more);
    found.edited = edited.dictionaries.map((each) => [each.sourceLangCode, each.entryCount]);
    const both = await client.getMultilingualGlossaryDictionaryEntries(made, 'en', 'fr');
    found.entries = both.entries.entries();
    await client.deleteMultilingualGlossary(made);
    found.glossaries = (await client.listMultilingualGlossaries()).length;
    const file = { filename: 'a.txt' };
    const handle = await client.uploadDocument(Buffer.from('The old dog.'), 'en', 'fr', file);
    found.status = (await client.isDocumentTranslationComplete(handle)).status.status;
    await client.downloadDocument(handle, output);
    found.same = await message(client.uploadDocument(Buffer.from('a'), 'fr', 'fr', file));
    found.odd = await message(
        client.uploadDocument(Buffer.from('a'), 'en', 'fr', { filename: 'a.exe' })
    );
    found.formality = await message(client.translateText('a', 'en', 'fr', { formality: 'more' }));
    console.log(JSON.stringify(found));
})();

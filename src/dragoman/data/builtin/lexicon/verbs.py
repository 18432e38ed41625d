"""The verbs: one line per concept, read with the conjugations of the three languages."""

from dragoman.data.builtin.lexicon.conjugation import (
    conjugate_english,
    conjugate_french,
    conjugate_spanish,
)
from dragoman.data.builtin.lexicon.entries import Verb

# subjects | objects | traits | French | English | Spanish
# French: infinitive [present forms][; future stem][; participle]; “+be” takes être; “+p x” has the
# particle x, “+prep x” the preposition x before its object. See conjugation.py. A line that
# begins with blanks continues the one before.
_TABLE = """
person pet | food | optional manner | manger | eat:ate:eating | comer
person | drink | optional | boire bois,bois,boit,buvons,boivent; boir; bu | drink:drank:drinking
  | beber
person | thing vehicle food drink | | acheter =achèt | buy:bought:buying | comprar
person | thing vehicle food home | | vendre vends,vends,vend,vendons,vendent; vendr; vendu |
  sell:sold:selling | vender
person animal | person animal thing vehicle place film | instant | voir
  vois,vois,voit,voyons,voient; verr; vu | see:saw:seeing | ver veo,ves,ve,vemos,ven
  vi,viste,vio,vimos,vieron
person | animal film art person vehicle | | regarder | watch | mirar
person | readable | optional manner | lire lis,lis,lit,lisons,lisent; lir; lu | read:read:reading
  | leer
person | writable | optional manner | écrire écris,écris,écrit,écrivons,écrivent; écrir; écrit |
  write:wrote:writing | escribir
person | thing animal readable | instant | trouver | find:found:finding | encontrar o>ue
person | portable clothes gift | instant | perdre perds,perds,perd,perdons,perdent; perdr; perdu
  | lose:lost:losing | perder e>ie
person | openable | | ouvrir ouvre,ouvres,ouvre,ouvrons,ouvrent; ouvrir; ouvert | open | abrir
person | openable | | fermer | close | cerrar e>ie
person | person | stative | connaître connais,connais,connaît,connaissons,connaissent; connaîtr;
  connu | know:knew:knowing | conocer conozco
person | place country | | visiter | visit | visitar
person | person | | appeler =appell | call | llamar
person | person | | inviter | invite | invitar
person | person | | aider | help | ayudar
person | food drink animal event vehicle song sound gift | stative generic | adorer |
  love | adorar
person | food drink animal event vehicle sound | stative generic | détester | hate | detestar
person | food drink animal vehicle sound | stative generic | préférer =préfèr; préférer |
  prefer:preferred:preferring | preferir e>ie preferí,preferiste,prefirió,preferimos,prefirieron
person | person public | | attendre attends,attends,attend,attendons,attendent; attendr; attendu
  | wait +p for | esperar
person | portable person animal clothes | | chercher | look +p for | buscar
person | person sound song | | écouter | listen +p to | escuchar
person | song | optional | chanter | sing:sang:singing | cantar
person pet | | manner | jouer | play | jugar u>ue
person | | | travailler | work | trabajar
person animal | | | dormir dors,dors,dort,dormons,dorment; dormir; dormi | sleep:slept:sleeping |
  dormir o>ue dormí,dormiste,durmió,dormimos,durmieron
person | | | parler | talk | hablar
person animal | | manner | marcher | walk | caminar
person | | | nager | swim:swam:swimming | nadar
person | | | danser | dance | bailar
person | | | rire ris,ris,rit,rions,rient; rir; ri | laugh | reír río,ríes,ríe,reímos,ríen
  reí,reíste,rió,reímos,rieron
person animal | | manner | courir cours,cours,court,courons,courent; courr; couru |
  run:ran:running | correr
person | | abroad | voyager | travel:travelled:travelling | viajar
person | | motion | aller vais,vas,va,allons,vont; ir; allé +be | go:went:going | ir
  voy,vas,va,vamos,van fui,fuiste,fue,fuimos,fueron
person | | origin | venir viens,viens,vient,venons,viennent; viendr; venu +be | come:came:coming
  | venir vengo,vienes,viene,venimos,vienen vine,viniste,vino,vinimos,vinieron vendr
person public | | residence | arriver +be | arrive | llegar
person public | | | partir pars,pars,part,partons,partent; partir; parti +be | leave:left:leaving
  | salir salgo,sales,sale,salimos,salen salí,saliste,salió,salimos,salieron saldr
person | home shop building | | entrer +be +prep dans | enter | entrar +prep en
person | | residence stative | habiter | live | vivir
person | | birth past | naître nais,nais,naît,naissons,naissent; naîtr; né +be | be/is:was:being
  +p born | nacer nazco
person | portable gift food readable clothes | recipient | donner | give:gave:giving | dar
  doy,das,da,damos,dan di,diste,dio,dimos,dieron
person | readable gift | recipient | envoyer =envoi; enverr | send:sent:sending | enviar
  envío,envías,envía,enviamos,envían
person | thing art place vehicle | recipient | montrer | show | mostrar o>ue
person | portable readable clothes drivable | recipient | prêter | lend:lent:lending | prestar
person | food drink gift portable | recipient | apporter | bring:brought:bringing | traer
  traigo,traes,trae,traemos,traen traje,trajiste,trajo,trajimos,trajeron
person | study idea | recipient | expliquer | explain | explicar
person | person study idea language | stative | comprendre
  comprends,comprends,comprend,comprenons,comprennent; comprendr; compris |
  understand:understood:understanding | entender e>ie
person | portable clothes idea song | instant | oublier | forget:forgot:forgetting | olvidar
person | public | | prendre prends,prends,prend,prenons,prennent; prendr; pris | take:took:taking
  | tomar
person | drivable | optional | conduire conduis,conduis,conduit,conduisons,conduisent; conduir;
  conduit | drive:drove:driving | conducir conduzco,conduces,conduce,conducimos,conducen
  conduje,condujiste,condujo,condujimos,condujeron
person animal | container | | casser | break:broke:breaking | romper
person | clothes container vehicle | | laver | wash | lavar
person | home shop part | | nettoyer =nettoi; nettoier | clean | limpiar
person | art home part | | peindre peins,peins,peint,peignons,peignent; peindr; peint | paint |
  pintar
person | home building public-place | | construire
  construis,construis,construit,construisons,construisent; construir; construit |
  build:built:building | construir construyo,construyes,construye,construimos,construyen
  construí,construiste,construyó,construimos,construyeron
person | language study | optional | étudier | study | estudiar
person | event readable | | finir finis,finis,finit,finissons,finissent; finir; fini | finish |
  terminar
event | | start | commencer | start | empezar e>ie
person | clothes | | porter | wear:wore:wearing | llevar
person animal | crossable | | traverser | cross | cruzar
person | | | pleurer | cry | llorar
person | dish | | cuisiner | cook | cocinar
person | thing pet vehicle clothes home idea | stative nopersonal | avoir ai,as,a,avons,ont; aur;
  eu | have/has:had:having | tener tengo,tienes,tiene,tenemos,tienen
  tuve,tuviste,tuvo,tuvimos,tuvieron tendr
person | thing vehicle food drink gift | stative nopersonal | avoir ai,as,a,avons,ont; aur; eu +p
  besoin +prep de | need | necesitar
person | | past | tomber +be | fall:fell:falling | caer caigo,caes,cae,caemos,caen
  caí,caíste,cayó,caímos,cayeron
thing vehicle | unit | stative price | coûter | cost:cost:costing | costar o>ue
person | | content | dire dis,dis,dit,disons,disent; dir; dit | say:said:saying | decir
  digo,dices,dice,decimos,dicen dije,dijiste,dijo,dijimos,dijeron dir
person | | content stative | penser | think:thought:thinking | pensar e>ie
person | | content stative | savoir sais,sais,sait,savons,savent; saur; su | know:knew:knowing |
  saber sé,sabes,sabe,sabemos,saben supe,supiste,supo,supimos,supieron sabr
person | | content stative | croire crois,crois,croit,croyons,croient; croir; cru | believe |
  creer
person | | modal stative | pouvoir peux,peux,peut,pouvons,peuvent; pourr; pu | can:could:can |
  poder o>ue pude,pudiste,pudo,pudimos,pudieron podr
person | | modal stative | vouloir veux,veux,veut,voulons,veulent; voudr; voulu | want +p to |
  querer e>ie quise,quisiste,quiso,quisimos,quisieron querr
person | | modal stative | devoir dois,dois,doit,devons,doivent; devr; dû | must:had:must | deber
person | | copula stative | être suis,es,est,sommes,sont; ser; été | be/is:was:being | ser
  soy,eres,es,somos,son fui,fuiste,fue,fuimos,fueron
person | | copula stative | être suis,es,est,sommes,sont; ser; été | be/is:was:being | estar
  estoy,estás,está,estamos,están estuve,estuviste,estuvo,estuvimos,estuvieron
"""


def _parse_line(line: str) -> Verb:
    subjects, objects, traits, french, english, spanish = (
        field.strip() for field in line.split("|")
    )
    return Verb(
        subjects=frozenset(subjects.split()),
        objects=frozenset(objects.split()),
        traits=frozenset(traits.split()),
        french=conjugate_french(french),
        english=conjugate_english(english),
        spanish=conjugate_spanish(spanish),
    )


VERBS: tuple[Verb, ...] = tuple(
    _parse_line(line) for line in _TABLE.replace("\n  ", " ").strip().splitlines()
)
SER, ESTAR = (verb for verb in VERBS if "copula" in verb.traits)
CAN, WANT, MUST = (verb for verb in VERBS if "modal" in verb.traits)
HAVE = next(verb for verb in VERBS if verb.english.base == "have")

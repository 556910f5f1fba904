"""English words that tell what is said of a person from what only sounds like it. Pure."""

NAMES = frozenset(
    """
    adam adrian aidan alan albert alex alexander alexandra alice alina alison amanda amber amy ana andrea andrew andy
    angela anna anne annie anthony anton aria arthur ashley barbara bella ben benjamin beth bill bob brandon brian bruce
    carl carla carlos carol caroline catherine charles charlie charlotte chloe chris christian christina christopher
    claire clara connor craig dan dana daniel daria dave david dean deborah dennis diana diego dmytro dominic donna doug
    dylan eddie edward eleanor elena eli elijah elizabeth ella ellen emily emma eric erica erik ethan eva evan evelyn
    felix finn fiona frank fred gabriel gary george gerald gina grace greg hailey hannah harry heather helen henry holly
    ian igor irene iris isaac isabella ivan jack jackson jacob jake james jamie jan jane janet jasmine jason jeff jen
    jennifer jenny jeremy jess jesse jessica jim jimmy joan joe joel john johnny jon jonathan jordan jose joseph josh
    joshua juan judy julia julian julie justin karen karl kate katherine kathy katie kevin kim kyle lara larry laura
    lauren leo leon liam lily linda lisa logan lois louis lucas lucy luke luna maria mark martha martin marta mary mason
    matt matthew max maya megan melissa mia michael michelle miguel mike mila molly monica nadia nancy natalie natasha
    nathan nick nicole nina noah nora oleg olena olha olivia oscar owen pam patricia patrick paul paula pedro peter phil
    philip rachel ralph ray rebecca richard rick rob robert robin roger roman ron rosa ross roy ruth ryan sam samantha
    samuel sandra sara sarah scott sean sergey sharon simon sofia sophia sophie stan stella stephanie stephen steve
    steven stuart sue susan taras taylor ted theo thomas tim timothy tina todd tom tommy tony tyler vera vic victor
    victoria viktor vincent kateryna oksana iryna yuliia andrii andriy bohdan serhii serhiy mykola mykhailo volodymyr
    oleksandr oleksandra oleksii yaroslav nazar ostap petro pavlo vasyl yurii yuriy vitalii anastasia svitlana tetiana
    nataliia natalia liudmyla solomiia zoriana khrystyna marichka danylo artem denys maksym ihor olga anya katya nastya
    sasha dasha misha vlad walter wendy will william yana yulia zach zoe
    """.split()
)

NOT_NAMES = frozenset(
    """
    batman superman groot spiderman ironman god jesus satan dracula sherlock neo thanos sorry sure back here done dead
    fine good great ok okay ready busy late sick tired hungry starving bored lost drunk happy sad angry mad scared alone
    home online offline new old young tall short right wrong left single married vegan not no just so very really too
    maybe later crazy when if what anytime tomorrow today now asap back again please on off in out up down hard long
    ukrainian american british english polish german french spanish italian russian canadian indian chinese japanese
    jewish christian muslim catholic orthodox a an the monday tuesday wednesday thursday friday saturday sunday shady
    doe ishmael bond montoya nobody anything whatever
    """.split()
)

PLACES = frozenset(
    p.strip()
    for p in """
    kyiv, kiev, lviv, odesa, odessa, kharkiv, dnipro, zaporizhzhia, vinnytsia, poltava, chernihiv, cherkasy, ternopil,
    rivne, lutsk, uzhhorod, mykolaiv, kherson, sumy, zhytomyr, mariupol, ivano-frankivsk, chernivtsi, crimea, donetsk,
    luhansk, ukraine, poland, warsaw, krakow, wroclaw, gdansk, poznan, germany, berlin, munich, hamburg, cologne,
    frankfurt, france, paris, lyon, marseille, spain, madrid, barcelona, valencia, seville, italy, rome, milan, naples,
    turin, portugal, lisbon, porto, england, scotland, wales, ireland, dublin, london, manchester, birmingham, leeds,
    liverpool, edinburgh, glasgow, bristol, uk, the uk, britain, usa, the usa, us, the us, the states, america, canada,
    toronto, vancouver, montreal, ottawa, calgary, mexico, new york, nyc, new york city, brooklyn, los angeles, la,
    chicago, houston, dallas, austin, boston, seattle, miami, denver, atlanta, philadelphia, san francisco, sf,
    san diego, portland, las vegas, washington, texas, california, florida, ohio, oregon, alaska, hawaii, new jersey,
    czechia, czech republic, prague, brno, slovakia, bratislava, hungary, budapest, austria, vienna, graz, switzerland,
    zurich, geneva, bern, belgium, brussels, antwerp, netherlands, the netherlands, holland, amsterdam, rotterdam,
    the hague, utrecht, denmark, copenhagen, sweden, stockholm, norway, oslo, bergen, finland, helsinki, estonia,
    tallinn, latvia, riga, lithuania, vilnius, kaunas, belarus, minsk, russia, moscow, moldova, chisinau, romania,
    bucharest, bulgaria, sofia, serbia, belgrade, croatia, zagreb, slovenia, ljubljana, greece, athens, turkey,
    istanbul, ankara, georgia, tbilisi, batumi, armenia, yerevan, azerbaijan, baku, israel, tel aviv, jerusalem, haifa,
    egypt, cairo, uae, dubai, abu dhabi, iran, tehran, iraq, india, delhi, mumbai, bangalore, pakistan, china, beijing,
    shanghai, hong kong, taiwan, taipei, japan, tokyo, osaka, kyoto, korea, south korea, seoul, thailand, bangkok,
    vietnam, hanoi, indonesia, bali, jakarta, philippines, the philippines, manila, malaysia, singapore, australia,
    sydney, melbourne, perth, brisbane, new zealand, auckland, brazil, rio, sao paulo, argentina, buenos aires, chile,
    santiago, colombia, bogota, peru, lima, nigeria, lagos, kenya, nairobi, ghana, south africa, cape town, morocco,
    kazakhstan, almaty, astana, uzbekistan, tashkent, cyprus, malta, iceland, reykjavik, luxembourg
    """.replace("\n", " ").split(",")
)

NOT_PLACES = frozenset(
    """
    minecraft discord roblox fortnite valorant skyrim twitter reddit telegram excel vim python narnia hogwarts mordor
    gotham wakanda westeros hell heaven mars moon earth venus jupiter pluto atlantis january february march april may
    june july august september october november december monday tuesday wednesday thursday friday saturday sunday fear
    hope peace pain denial space god i i'm bed linux windows mac macos firefox chrome arch ubuntu debian fedora vscode
    emacs slack teams github gitlab android ios iphone support sales marketing management finance accounting it hr pr qa
    office photoshop figma notion instagram facebook tiktok youtube whatsapp signal twitch steam fallout gta wow lol
    dota sims zoom java rust javascript typescript bank school work college university wikipedia google stackoverflow
    quora premium pro plus
    """.split()
)

JOBS = frozenset(
    """
    dev swe accountant actor actress analyst architect artist attorney baker barber barista bartender biologist
    bookkeeper builder carpenter cashier chef chemist cleaner coach consultant contractor cook copywriter courier
    dentist designer developer devops dietitian director doctor driver economist editor electrician engineer
    entrepreneur farmer firefighter florist freelancer gardener geologist guide hairdresser historian housewife
    illustrator intern interpreter janitor journalist judge lawyer lecturer librarian linguist logistician manager
    marketer mathematician mechanic midwife musician nanny neurologist nurse optician painter paralegal paramedic
    pediatrician pharmacist photographer physician physicist physiotherapist pilot plumber policeman producer professor
    programmer psychiatrist psychologist publicist realtor receptionist recruiter reporter researcher sailor salesman
    saleswoman scientist secretary seo singer sociologist soldier statistician streamer student surgeon surveyor tailor
    teacher technician tester therapist trader trainer translator truckdriver tutor undergrad vet veterinarian
    videographer waiter waitress welder writer youtuber qa paediatrician postdoc estimator sysadmin
    """.split()
)

NOT_JOBLIKE = frozenset(
    """
    bad terrible good great better best worse worst born real literal certified huge little big small former ex wannabe
    future fake natural secret true total complete self armchair amateur hopeless lousy awful horrible amazing decent
    careful fast slow responsible lazy such living walking failed not this that your his her their our my
    """.split()
)

WORKPLACES = frozenset(
    """
    bank hospital school university college kindergarten factory restaurant cafe bar pub hotel shop store supermarket
    library museum startup clinic pharmacy warehouse farm office lab laboratory bakery salon garage studio theatre
    theater ministry post airport call-center nursery gym firm company shop law-firm agency bookshop bookstore
    """.split()
)

FIELDS = frozenset(
    """
    it hr pr tech healthcare medicine education finance banking marketing sales retail logistics construction
    hospitality insurance advertising law accounting publishing journalism agriculture security gamedev fintech
    consulting science research engineering design media tourism fashion manufacturing cybersecurity qa support
    """.split()
)

SUBJECTS = frozenset(
    """
    law medicine biology chemistry physics math maths mathematics history philosophy economics psychology sociology
    linguistics engineering architecture design music art arts literature journalism marketing management business
    accounting finance geography geology astronomy nursing pharmacy dentistry politics informatics cs it computer
    science political international relations software mechanical electrical civil data applied english french german
    spanish japanese chinese and philology education robotics
    """.split()
)

LANGUAGES = frozenset(
    """
    english ukrainian polish german french spanish italian portuguese russian czech slovak japanese chinese mandarin
    cantonese korean arabic turkish greek hebrew hindi urdu bengali dutch swedish norwegian danish finnish hungarian
    romanian bulgarian serbian croatian lithuanian latvian estonian georgian armenian vietnamese thai esperanto latin
    catalan irish welsh persian farsi kazakh belarusian
    """.split()
)

FOODS = frozenset(
    """
    meat pork beef chicken fish seafood dairy milk cheese eggs gluten sugar alcohol coffee nuts peanuts wheat soy bread
    lactose caffeine beer wine sweets shellfish
    """.split()
)

ALLERGENS = FOODS | frozenset(
    """
    pollen dust cats dogs cat dog bees bee penicillin latex strawberries kiwi hay ragweed sesame mold mould grass
    birch shrimp shrimps prawns crab lobster mussels oysters squid crustaceans molluscs salmon tuna tomatoes citrus
    honey mites wasps feathers nickel aspirin ibuprofen amoxicillin sulfites mustard celery lupin corn garlic onions
    bananas avocado apples peaches mango pineapple coconut egg nut peanut almonds almond walnuts walnut hazelnuts
    hazelnut cashews cashew pistachios pistachio pecans pecan macadamias chestnuts
    """.split()
)

PLAYED = frozenset(
    """
    guitar piano drums violin bass ukulele saxophone flute cello trumpet keyboard bandura chess football soccer
    basketball volleyball tennis hockey badminton golf rugby cricket poker bridge dota minecraft valorant d&d handball
    """.split()
)

NATIONS = frozenset(
    """
    ukrainian polish german french spanish italian portuguese russian czech slovak japanese chinese korean turkish greek
    dutch swedish norwegian danish finnish hungarian romanian bulgarian serbian croatian lithuanian latvian estonian
    georgian armenian vietnamese thai irish welsh scottish british english american canadian australian indian mexican
    brazilian argentinian belgian austrian swiss israeli egyptian kazakh belarusian moldovan
    """.split()
)

PET_LOOKS = (
    "(?:(?:old|young|little|big|small|new|black|white|grey|gray|ginger|orange|fluffy|cute|lovely|rescue|"
    "adopted|tiny|fat|"
    "siamese|persian|british|maine coon|stray|senior|mixed) )?"
)
PETS = (
    "cats?|dogs?|kittens?|pupp(?:y|ies)|hamsters?|parrots?|rabbits?|bunn(?:y|ies)|turtles?|tortoises?|guinea pigs?|"
    "(?:golden |labrador )?retrievers?|labradors?|husk(?:y|ies)|corgis?|poodles?|dachshunds?|pugs?|"
    "(?:german )?shepherds?|"
    "beagles?|ferrets?|snakes?|goldfish|canar(?:y|ies)|budgies?|horses?|geckos?|lizards?|rats?"
)
KIN = (
    "wife|husband|son|daughter|brother|sister|mom|mum|mother|dad|father|girlfriend|boyfriend|fianc[eé]e?|partner|"
    "grandma|grandmother|grandpa|grandfather|twin"
)
CHILDREN = "kids?|child|children|sons?|daughters?|brothers?|sisters?|siblings?|twins|grandchildren|wife|husband"
MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)

NOT_THINGS = frozenset(
    """
    it this that these those i me my you u your yours he him his she her hers we us our they them their when how what
    where why who whom which whoever if because so such one ones being having getting seeing hearing here there myself
    yourself himself herself everything anything nothing something everyone everybody people anyone nobody someone too
    very same think say said believe pretend know idea way fact part look sound smell today yesterday tomorrow tonight
    now just not never more less than was were is are am do does did will would can could should lol lmao bit up down
    still option version choice ideas both all itself especially seeing stuff things thing guy guys way ways moment
    feeling it's that's ya em y'all
    """.split()
)

"""Words that say nothing of what a message is about, by language. Pure."""

_ENGLISH = """
go goes gone went
a about above after again all also am an and any anything are aren as at be because been before being but by can
cannot could couldn did didn do does doesn doing don down during each etc ever every few for from further get gets
getting got had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is
isn it its itself just let ll lot lots may me might mine more most much must my myself no nor not now of off on once
one only or other our ours out over own quite rather re really s same shall she should shouldn so some something such
t than that the their theirs them themselves then there these they thing things this those through to too under until
up upon us ve very was wasn we well were weren what when where whether which while who whom whose why will with won
would wouldn yet you your yours yourself d m doesnt dont didnt isnt wasnt im ive youre thats whats many going gonna
thanks thank hey hi hello wow yeah yes
"""

_UKRAINIAN = """
або але б без більш би бо був була були було бути в вам вас ваш ваша ваше ваші вже ви від він вона вони воно все всі
всіх всього втім де для до дуже є її їй їм їх ж за з зі й його йому із і інших як яка яке який які якого якщо ще що
щоб це цей ця ці цього цьому цю цим чи чого чому через коли кого ким кому хто куди лише мене мені ми мій моя моє мої
на над нам нами нас наш наша не нема ним них ні ніж о об один одна одне от ось по поки під при про саме сам свій своя
своє свої себе собі та так така таке такий такі там те ти тим то тобі того тоді той тому теж також тут у усе усі хоча
чим майже може можна треба
"""

_RUSSIAN = """
а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее если есть еще
же за здесь и из или им их к как какая какие какой когда кто куда ли либо меня мне можно мой моя мы на надо наш не
него нее нет ни них но ну о об однако он она они оно от очень по под при про с сам свой себя со так также такой там те
тем то того тоже той только том ты у уже хотя чего чей чем что чтобы чье чья эта эти это этот я
"""

_POLISH = """
a aby ale am bardzo bez bo był była było były być by ci cię co czy czyli dla do gdy gdzie go i ich ile im ja jak jaka
jaki jakie je jego jej jest jestem jeszcze jeśli już kiedy kto która które który lub ma mam mi mnie może mu my na nad
nas nie nim niż o od on ona one oni ono oraz po pod przez przy są się tak także tam te tego tej ten to tu ty tylko tym
w we więc wszystko z za ze że
"""

_GERMAN = """
aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass daß dein deine dem den der des dich die
dies diese dieser dieses dir doch dort du ein eine einem einen einer eines er es euch euer für hab habe haben hat
hatte hatten hier ich ihm ihn ihr ihre im in ist ja jede jeder jedes kann kein keine mal man mein meine mich mir mit
nach nicht noch nun nur ob oder ohne schon sehr sein seine sich sie sind so über um und uns unser unter vom von vor
wann war waren warum was weil welche welcher wenn wer werde werden wie wieder wir wird wo wurde zu zum zur
"""

OF_WEIGHT = frozenset("ale am bin die fur hat man may pod ten war".split())  # words elsewhere, which must not be lost
STOPWORDS = frozenset(" ".join((_ENGLISH, _UKRAINIAN, _RUSSIAN, _POLISH, _GERMAN)).split()) - OF_WEIGHT

_FILLERS = """
may onto between both okay lol like know think want see say said tell make two still even never back good please sure
right maybe done need небудь щось хтось добре дякую привіт ага звісно знаю думаю буде маю спасибо привет хорошо будет
ale pod ten bin hat war que los las una por con para pero como más les est pas une dans pour avec sur vous nous mais
everyone everybody everything anyone anybody someone somebody nothing nobody around away always often today tomorrow
yesterday
"""

SAYING_NOTHING = STOPWORDS | frozenset(_FILLERS.split())  # of what a talk is about; asked for, they may be found

package speechtest

// entry is a recording and what is said in it.
type entry struct{ file, text string }

// promptTexts are sentences of asterisk-core-sounds-en-g722.
var promptTexts = []entry{
	{"agent-alreadyon", "that agent is already logged on please enter your agent number followed by the pound key"},
	{"agent-pass", "please enter your password followed by the pound key"},
	{"all-circuits-busy-now", "all circuits are busy now"},
	{"at-tone-time-exactly", "at the sound of the tone the time will be exactly"},
	{"auth-incorrect", "password incorrect please enter your password followed by the pound key"},
	{"cannot-complete-as-dialed", "your call cannot be completed as dialed"},
	{"check-number-dial-again", "please check the number and dial again"},
	{"conf-extended", "the conference has been extended"},
	{"conf-getchannel", "please enter the channel number followed by the pound key"},
	{"conf-getconfno", "please enter your conference number followed by the pound key"},
	{"conf-getpin", "please enter the conference pin number"},
	{"conf-hasjoin", "is now in the conference"},
	{"conf-hasleft", "has left the conference"},
	{"conf-invalid", "that is not a valid conference number please try again"},
	{"conf-kicked", "you have been kicked from this conference"},
	{"conf-leaderhasleft", "the leader has left the conference"},
	{"conf-lockednow", "the conference is now locked"},
	{"conf-noempty", "no empty conferences currently exist"},
	{"conf-nonextended", "the conference cannot be extended"},
	{"conf-now-recording", "the conference is now being recorded"},
	{"conf-onlyone", "there is currently one other participant in the conference"},
	{"conf-onlyperson", "you are currently the only person in this conference"},
	{"conf-placeintoconf", "you will now be placed into the conference"},
	{"conf-userswilljoin", "users will join the conference"},
	{"confbridge-begin-glorious-a", "the conference will begin when our glorious leader arrives"},
	{"confbridge-conf-end", "the conference has ended"},
	{"confbridge-dec-list-vol-in", "to decrease the audio volume from other participants"},
	{"confbridge-inc-talk-vol-in", "to increase your speaking volume to other participants"},
	{"confbridge-lock-no-join", "the conference is currently locked and cannot be joined"},
	{"confbridge-only-participant", "you are currently the only participant in the conference"},
	{"demo-echodone", "the echo test has been completed"},
	{"demo-enterkeywords", "please enter one or more keywords separated by star and then press the pound key"},
	{"demo-nomatch", "i'm sorry there are no matches for those keywords"},
	{"dir-intro", "welcome to the directory please enter the first three letters of your party's last name using your touch tone keypad use the seven key for q and the nine key for z"},
	{"feature-not-avail-line", "that feature is not available on this line"},
	{"followme/options", "press one to accept this call or two to reject it"},
	{"followme/pls-hold-while-try", "please hold while i try to locate the person you're calling"},
	{"followme/status", "the person you're calling is not at their desk i will try to locate them for you"},
	{"info-about-last-call", "information about your last call"},
	{"number-not-answering", "the number is not answering"},
	{"pls-hold-while-try", "please hold while we try to connect you"},
	{"priv-recordintro", "at the tone please say your name"},
	{"privacy-incorrect", "i'm sorry that number is not valid"},
	{"privacy-prompt", "please enter your phone number starting with the area code"},
	{"privacy-unident", "the party you are trying to reach does not accept unidentified calls"},
	{"queue-periodic-announce", "all of our representatives are currently busy please stay on the line and your call will be answered by the next available representative"},
	{"queue-youarenext", "your call is now first in line and will be answered by the next available representative"},
	{"ss-noservice", "the number you have dialed is not in service please check the number and try again"},
	{"tt-allbusy", "all representatives of the household are currently assisting other telemarketers please hold and your call will be answered in the order it was received"},
	{"tt-somethingwrong", "something is terribly wrong"},
	{"tt-weasels", "weasels have eaten our phone system"},
	{"vm-advopts", "press three for advanced options"},
	{"vm-enter-num-to-call", "please enter the number you wish to call"},
	{"vm-invalidpassword", "that is not a valid password please try again"},
	{"vm-msgforwarded", "your message has been successfully forwarded"},
	{"vm-msgsaved", "your message has been saved"},
	{"vm-newpassword", "please enter your new password followed by the pound key"},
	{"vm-nobodyavail", "nobody is available to take your call at the moment"},
	{"vm-sorry", "i'm sorry i did not understand your response"},
	{"vm-starmain", "press star to return to the main menu"},
}

// commandTexts are words and short phrases of asterisk-core-sounds-en-g722.
var commandTexts = []entry{
	{"digits/0", "zero"}, {"digits/1", "one"}, {"digits/2", "two"}, {"digits/3", "three"},
	{"digits/4", "four"}, {"digits/5", "five"}, {"digits/6", "six"}, {"digits/7", "seven"},
	{"digits/8", "eight"}, {"digits/9", "nine"}, {"digits/10", "ten"}, {"digits/11", "eleven"},
	{"digits/12", "twelve"}, {"digits/20", "twenty"},
	{"digits/day-0", "sunday"}, {"digits/day-1", "monday"}, {"digits/day-2", "tuesday"},
	{"digits/day-3", "wednesday"}, {"digits/day-4", "thursday"}, {"digits/day-5", "friday"},
	{"digits/day-6", "saturday"}, {"digits/today", "today"}, {"digits/tomorrow", "tomorrow"},
	{"digits/yesterday", "yesterday"}, {"digits/mon-0", "january"}, {"digits/mon-3", "april"},
	{"digits/mon-6", "july"}, {"digits/mon-9", "october"},
	{"phonetic/b_p", "bravo"}, {"phonetic/c_p", "charlie"}, {"phonetic/f_p", "foxtrot"},
	{"phonetic/l_p", "lima"}, {"phonetic/o_p", "oscar"}, {"phonetic/u_p", "uniform"},
	{"phonetic/v_p", "victor"}, {"phonetic/y_p", "yankee"},
	{"call-forwarding", "call forwarding"}, {"call-waiting", "call waiting"},
	{"do-not-disturb", "do not disturb"}, {"goodbye", "goodbye"}, {"hello-world", "hello world"},
	{"one-moment-please", "one moment please"}, {"please-try-again", "please try again"},
	{"speed-dial", "speed dial"}, {"vm-nomore", "no more messages"},
}

// otherTexts are recordings of pocketsphinx-testdata, of other speakers.
var otherTexts = []entry{
	{"goforward.raw", "go forward ten meters"},
	{"librivox/sense_and_sensibility_01_austen_64kb-0870.wav", "and mister john dashwood had then leisure to consider how much there might be prudently in his power to do for them"},
	{"librivox/sense_and_sensibility_01_austen_64kb-0880.wav", "he was not an ill disposed young man"},
	{"librivox/sense_and_sensibility_01_austen_64kb-0890.wav", "unless to be rather cold hearted and rather selfish is to be ill disposed"},
	{"librivox/sense_and_sensibility_01_austen_64kb-0930.wav", "he might even have been made amiable himself"},
}

// mandarinTexts are the clips in the folder zh.
var mandarinTexts = []entry{
	{"nihao.wav", "你好"}, {"kaideng.wav", "打开灯"}, {"yi-shi.wav", "一二三四五六七八九十"},
}

package intent

import (
	"slices"
	"strings"
)

// completeEnglish judges English words, without marks and in lower case.
func completeEnglish(words []string) Completeness {
	if oneOf(strings.Join(words, "_"), en().Whole) {
		return Finished
	}
	for len(words) > 1 && oneOf(words[0], en().Lead) {
		words = words[1:]
	}
	rest := withoutPlea(words)
	whole := strings.Join(rest, "_")
	switch {
	case whole == "":
		return Undecided
	case oneOf(whole, en().Whole):
		return Finished
	case oneOf(whole, en().Begun), whole == "please" && len(words) > 1, enLacksParticle(rest):
		return Unfinished
	}
	if f := enLastWord(words); f != Undecided {
		return f
	}
	if enOpenAnyway(words) {
		return Undecided
	}
	if enCommands(rest) || enAsks(words) {
		return Finished
	}
	return Undecided
}

// withoutPlea takes away what asks politely for what follows.
func withoutPlea(words []string) []string {
	for {
		n := 0
		for plea := range strings.FieldsSeq(en().Pleas) {
			p := strings.Split(plea, "_")
			if len(p) > n && len(words) > len(p) && slices.Equal(words[:len(p)], p) {
				n = len(p)
			}
		}
		if n == 0 {
			return words
		}
		words = words[n:]
	}
}

// enLastWord judges by the last word: [Unfinished] when something must follow,
// [Undecided] when it tells nothing or both.
func enLastWord(words []string) Completeness {
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	asks := slices.ContainsFunc(words[:len(words)-1], isWh)
	ends := true
	switch {
	case oneOf(last, "and but because cause if the a an my your our their um uh er erm or than into very every each although unless whether plus gonna wanna gotta im ill ive youre theyre lets which whose another such during toward towards per via until"):
		ends = false
	case oneOf(last, "i he she we they"):
		ends = asks && oneOf(before, "am is are was were") // who is she
	case last == "so":
		ends = oneOf(before, "think guess hope suppose say said told do or that believe quite doing why not even just")
	case last == "that":
		ends = before != "so" && before != "such" && before != "the"
	case last == "id": // I'd, or a device's id
		ends = before != ""
	case last == "then":
		ends = before != "and"
	case last == "like":
		return enLike(words, before, asks)
	case oneOf(last, "is are was were am does did can could will would should have has had"):
		ends = enAfterSubject(words, before)
	case last == "to":
		return enTo(words, before)
	case oneOf(last, "of for with about from at by between without in on"):
		return enPreposition(words, last, before, asks)
	case last == "as":
		ends = before == "such" || before == "same"
	case oneOf(last, "point dot"):
		ends = !isNumberWord(before)
	case last == "you":
		two := before + "_" + last
		begun := oneOf(two, "can_you could_you will_you") && len(words) <= 4 || two == "do_you" && asks
		ends = !begun
	}
	if ends {
		return Undecided
	}
	return Unfinished
}

// enLike judges "like" at the end: what is it like, do you like, and I like.
func enLike(words []string, before string, asks bool) Completeness {
	switch {
	case asks && isWh(words[0]):
		return Finished
	case asks, before == "you", oneOf(words[0], "do does did"):
		return Undecided
	}
	return Unfinished
}

// enAfterSubject reports whether a form of "be" or the like may end the words:
// behind a pronoun (yes it is), or in a question within (tell me where the
// light is). "What is" and "my name is" are not over.
func enAfterSubject(words []string, before string) bool {
	switch {
	case oneOf(before, "i you he she it we they"), slices.Contains(words, "all"):
		return true // yes it is, that is all there is
	case isWh(before) || before == "":
		return false
	case oneOf(words[len(words)-1], "is are was were"):
		return slices.ContainsFunc(words[1:], isWh)
	}
	return !oneOf(before, "that this there")
}

// enTo judges "to" at the end. I don't want to, and who are you talking to, are
// over; I want to, and how do I get to, are not.
func enTo(words []string, before string) Completeness {
	denied := slices.ContainsFunc(words, func(w string) bool {
		return oneOf(w, "dont not didnt cant wont wouldnt never doesnt")
	})
	switch {
	case isWh(words[0]) && words[0] != "how" && oneOf(before, "listening talking talk listen up speaking belong referring speak"):
		return Finished
	case denied && oneOf(before, "want need have like going used able supposed allowed love"), oneOf(before, "love used"):
		return Undecided
	}
	return Unfinished
}

// enLacksParticle reports whether the words say "turn the light" and not yet
// how: no particle follows.
func enLacksParticle(words []string) bool {
	return len(words) > 2 && oneOf(words[0], "turn switch put") && oneOf(words[1], "the my this that our") &&
		!slices.ContainsFunc(words[2:], func(w string) bool { return oneOf(w, "on off up down to at by in into out back around over away") })
}

// enPreposition judges a preposition at the end. In a question it may be the last word (what is it
// for, where are you from), behind a noun hardly (what is the capital of, what is the weather in).
func enPreposition(words []string, last, before string, asks bool) Completeness {
	switch {
	case oneOf(before+"_"+last, "what_about how_about what_of think_about think_of tell_about"):
		return Unfinished
	case last == "on" && oneOf(before, "based depends depending information focus concentrate"):
		return Unfinished
	case last == "on" && (len(words) > 2 && oneOf(words[0], "turn switch put leave keep") ||
		oneOf(before, "come go hold hang move carry") || asks && before == "going"):
		return Finished // turn the light on
	case last == "on":
		return Undecided
	case oneOf(before+"_"+last, "kind_of sort_of come_with go_with come_in get_in log_in sign_in check_in me_in them_in him_in us_in go_in on_in im_in it_in stand_by good_by") && !asks:
		return Undecided
	case len(words) >= 3 && asks && oneOf(before, "it this that you he she they we i looking talking waiting going coming"):
		return Finished
	case asks && slices.Contains(words, "the") && isWh(words[0]):
		return Unfinished
	case asks:
		return Undecided
	}
	return Unfinished
}

// enOpenAnyway reports whether the last word leaves it open if more comes, in
// questions and commands alike: figures, adverbs and words that want a noun.
func enOpenAnyway(words []string) bool {
	last := words[len(words)-1]
	if isWh(words[0]) && len(words) <= 3 && oneOf(last, "this that these those") {
		return false // what is that
	}
	return isNumberWord(last) || oneOf(last, "to of for with about from at by between without in like some any this these those more other then that so as only just also maybe what which who where when how not if has have had "+
		"oclock double new big red good first next last best know want need think get make find put use set change turn say spell call give take send is are was were am does did can could will would should")
}

// enCommands reports whether the words are a command with its object.
func enCommands(words []string) bool {
	first, last := words[0], words[len(words)-1]
	switch {
	case oneOf(first, "turn switch"):
		return oneOf(last, "on off up down around back over out louder quieter") && len(words) > 2 ||
			len(words) > 2 && oneOf(words[1], "on off up down")
	case oneOf(first, "set change"):
		at := slices.IndexFunc(words, func(w string) bool { return oneOf(w, "to for at") })
		return at > 0 && at < len(words)-1
	case oneOf(first, "tell show remind give teach wake"):
		return len(words) > 3 || len(words) > 2 && oneOf(words[1], "us him her") || strings.Join(words, "_") == "wake_me_up"
	case oneOf(first, "play stop pause open close dim start cancel delete skip repeat increase decrease raise lower mute unmute sing read call lock unlock add put make find search take help shut forget remember translate brighten clear explain describe write"):
		return len(words) > 1
	}
	return false
}

// enAsks reports whether the words are a question with its verb and more.
func enAsks(words []string) bool {
	verb := func(w string) bool {
		return oneOf(w, "is are am was were do does did can could will would should has have had may might shall isnt arent dont doesnt cant happened happens means makes")
	}
	first := words[0]
	switch {
	case oneOf(first, "whats whos wheres hows whens"):
		return len(words) > 1
	case first == "why":
		return len(words) > 4
	case isWh(first):
		at := slices.IndexFunc(words, verb)
		if oneOf(first, "when where who") && at != 1 {
			return false // when I was young
		}
		return at > 0 && at < len(words)-1
	case verb(first):
		if len(words) > 1 && oneOf(words[1], "the a my your this that there") {
			return len(words) > 3
		}
		return len(words) > 2
	}
	return false
}

// isWh reports whether a word asks.
func isWh(word string) bool {
	return oneOf(word, "what whats who whos where wheres when whens why how hows which whose")
}

// isNumberWord reports whether a word is a number, or a figure of one.
func isNumberWord(word string) bool {
	return strings.Trim(word, "0123456789") == "" || oneOf(word, "zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "+
		"twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half")
}

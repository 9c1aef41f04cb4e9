package pocketsphinx

import (
	"strings"

	"xiaozhi/internal/text"
)

// The limits below were measured; README.md has the table and the command.
const (
	// maxMargin is the amount by which the phrases may fit worse per frame than
	// dictation's own words before dictation is believed.
	maxMargin = 16.5
	// minCoverage is the part of the spoken frames that a phrase must explain:
	// "go forward ten meters" is not the phrase "go forward".
	minCoverage = 0.75
	// maxWordFrames is the longest that a few words may last on average, 1.25 s,
	// and maxManyFrames that of more than fewWords: music is heard as long words.
	maxWordFrames = 125
	maxManyFrames = 55
	// posteriorWeight turns a word's posterior (log, base 1.0001) into the
	// units of the scores per frame.
	posteriorWeight = 1.0 / 1200
	// noiseWeight turns the part of the utterance that dictation could only take
	// for noise or babble into the same units: music has more of it than speech.
	noiseWeight = 200.0
	// leastMotion is the motion below which a sound is hardly speech, and stillness what each
	// missing unit of it adds to the doubt; both are of many words and of few.
	leastMotion, leastMotionOfFew = 38.0, 32.0
	stillness, stillnessOfFew     = 2.0, 6.0
	// mostMotion is the motion above which a sound is no speech.
	mostMotion = 95.0
	// maxDoubt is the doubt over which an utterance is rejected. Fewer words than
	// fewWords prove little: each that is missing raises the limit by fewSlack.
	maxDoubt = 69.0
	fewWords = 4
	fewSlack = 12.0
	// hintedDoubt is the limit where another language is expected, and hintedSlack what is added
	// to it for a single word: a short Chinese sentence is heard as two or three English
	// words. They fit the sound badly: each unit of fit beyond poorFit counts hintedFit more.
	hintedDoubt = 68.0
	hintedSlack = 8.0
	poorFit     = -42.0
	hintedFit   = 2.0
	// surePosterior is the mean posterior of words from which nothing else could be heard: a
	// badly fitting "thank you" is still one.
	surePosterior = -5000.0
	// fewForNoise is the number of words beside which noise proves nothing: a click
	// before a single word is a good part of it.
	fewForNoise = 2
)

// measurement holds the results of the two searches of one utterance.
type measurement struct {
	dictation []segment // the best path through the language model
	command   []segment // the best path through the phrases; nil without a grammar
	motion    float64   // of the sound; 0 is unknown
}

// verdict is the decision on a measurement.
type verdict struct {
	text     string
	grammar  bool // text is one of the phrases
	rejected bool
	fit      float64 // acoustic log score per frame of dictation's words; 0 is best
	margin   float64 // by how much it is better than the phrases' score
	doubt    float64 // what rejection looks at
	motion   float64 // of the sound
	words    int     // of dictation
	sure     bool    // hardly another word fits in their places
}

// judge chooses between the phrases and dictation, and decides whether it
// was English at all. hint is the language that is expected, "" for none: when it is
// another than English, words that are none of the phrases are doubted sooner.
func (m measurement) judge(hint string) verdict {
	v := verdict{text: textOf(m.dictation), motion: m.motion}
	spoken := v.weighWords(m.dictation)
	v.weighMotion(m.motion)
	v.rejected = v.doubt > v.limit() || tooLong(spoken, v.words)
	v.weighPhrase(m.command, v.fit, spoken)
	if hint != "" && !text.Lang(hint).IsEnglish() {
		v.rejected = v.rejected || v.foreign()
	}
	v.rejected = (v.rejected || saysNothing(v.text)) && !v.grammar
	return v
}

// saysNothing reports whether all words only join others: a bar of music is heard as "but i" or "of if", and fits well.
func saysNothing(text string) bool {
	for word := range strings.FieldsSeq(text) {
		switch word {
		case "a", "an", "and", "as", "at", "but", "by", "for", "from", "i", "if", "in", "of", "or", "than", "the", "to", "with":
		default:
			return false
		}
	}
	return text != ""
}

// weighWords doubts dictation's words: how badly they fit the sound and one
// another, both per frame, how many other words might have been heard in their
// place, and how much of it was no word at all. English words that fit the sound
// can be made of another language; they make no sentence, and others fit as well.
// It gives the number of spoken frames.
func (v *verdict) weighWords(words []segment) (spoken int) {
	var language, posterior, noise float64
	for _, s := range words {
		switch {
		case !isFiller(s.word):
			v.words++
			language += float64(s.language)
			posterior += float64(s.posterior)
		case !isSilence(s.word):
			noise += float64(s.frames)
		}
	}
	if v.words <= fewForNoise {
		noise = 0
	}
	v.fit, spoken = perFrame(words)
	if v.words > 0 && spoken > 0 {
		v.sure = posterior/float64(v.words) >= surePosterior
		v.doubt = -v.fit - language/float64(spoken) - posteriorWeight*posterior/float64(v.words) +
			noiseWeight*noise/(noise+float64(spoken))
	}
	return spoken
}

// weighMotion doubts words in a sound that changes too little, or more than a mouth can.
func (v *verdict) weighMotion(motion float64) {
	least, weight := leastMotion, stillness
	if v.words <= fewForNoise {
		least, weight = leastMotionOfFew, stillnessOfFew
	}
	switch {
	case motion == 0 || v.words == 0:
	case motion > mostMotion:
		v.doubt += 2 * maxDoubt
	case motion < least:
		v.doubt += weight * (least - motion)
	}
}

// limit returns the doubt above which a text is rejected.
func (v *verdict) limit() float64 { return maxDoubt + fewSlack*float64(max(0, fewWords-v.words)) }

// foreign reports whether the words are too doubtful where another language is expected.
func (v *verdict) foreign() bool {
	limit := hintedDoubt
	if v.words == 1 {
		limit += hintedSlack
	}
	misfit := max(0, poorFit-v.fit)
	if v.sure {
		misfit = 0
	}
	return v.doubt+hintedFit*misfit > limit
}

// tooLong reports whether the words cannot have been said in the frames.
func tooLong(frames, words int) bool {
	if words > fewWords {
		return frames > maxManyFrames*words
	}
	return frames > maxWordFrames*words
}

// weighPhrase takes the phrase instead of dictation's words, which fit the
// spoken frames as given, if it explains the sound about as well.
func (v *verdict) weighPhrase(command []segment, fit float64, spoken int) {
	phrase := textOf(command)
	score, covered := perFrame(command)
	if phrase == "" || tooLong(covered, strings.Count(phrase, " ")+1) {
		return
	}
	if phrase == v.text {
		v.grammar = true
		return
	}
	v.margin = fit - score
	v.grammar = spoken > 0 && !v.rejected && v.margin <= maxMargin &&
		float64(covered) >= minCoverage*float64(spoken)
	if v.grammar {
		v.text = phrase
	}
}

// perFrame returns the mean acoustic log score of the frames that are not filler.
// 0 would be the best sound of the model in every frame.
func perFrame(segments []segment) (score float64, frames int) {
	var sum float64
	for _, s := range segments {
		if !isFiller(s.word) {
			sum += float64(s.acoustic)
			frames += s.frames
		}
	}
	return sum / float64(max(frames, 1)), frames
}

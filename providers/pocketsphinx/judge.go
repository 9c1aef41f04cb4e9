package pocketsphinx

import "strings"

// The limits below were measured; README.md has the table and the command.
const (
	// maxMargin is how much worse per frame the phrases may fit than
	// dictation's own words before dictation is believed.
	maxMargin = 12.0
	// minCoverage is the part of the spoken frames that a phrase must explain:
	// "go forward ten meters" is not the phrase "go forward".
	minCoverage = 0.75
	// maxWordFrames is the longest that words may last on average, 1.15 s:
	// music is heard as few and very long ones.
	maxWordFrames = 115
	// posteriorWeight turns a word's posterior (log, base 1.0001) into the
	// units of the acoustic score.
	posteriorWeight = 0.0003
	// typicalDoubt is the doubt about ordinary English speech. The doubt above
	// it counts n/(n+fewWords) for n words: a few words prove little.
	typicalDoubt = 32.0
	fewWords     = 2
	// stray is the number of words that say nothing by themselves when another
	// language is expected: a short Chinese sentence is heard as one or two.
	stray = 2
	// maxDoubt is the doubt over which an utterance is rejected.
	maxDoubt = 13.6
)

// measurement is what the passes over one utterance found.
type measurement struct {
	dictation []segment // of the language model
	aligned   []segment // dictation's words, scored by the grammar's decoder
	command   []segment // the best path through the phrases; nil without a grammar
}

// verdict is what was made of a measurement.
type verdict struct {
	text     string
	grammar  bool // text is one of the phrases
	rejected bool
	fit      float64 // acoustic log score per frame of dictation's words; 0 is best
	margin   float64 // by how much it is better than the phrases' score
	doubt    float64 // what rejection looks at
	words    int     // of dictation
}

// judge chooses between the phrases and dictation, and decides whether it
// was English at all. hint is the language that is expected, "" for none: it
// rejects nothing but one or two words that are none of the phrases.
func (m measurement) judge(hint string) verdict {
	v := verdict{text: textOf(m.dictation)}
	var posterior float64
	for _, s := range m.dictation {
		if !isFiller(s.word) {
			v.words++
			posterior += float64(s.posterior)
		}
	}
	fit, spoken := perFrame(m.aligned)
	if v.words > 0 && spoken > 0 {
		n := float64(v.words)
		v.fit, v.doubt = fit, (-fit-posteriorWeight*posterior/n-typicalDoubt)*n/(n+fewWords)
		v.rejected = v.doubt > maxDoubt || spoken > maxWordFrames*v.words
	}
	v.weighPhrase(m.command, fit, spoken)
	if hint != "" && hint != "en" && v.words > 0 && v.words <= stray {
		v.rejected = true
	}
	v.rejected = v.rejected && !v.grammar
	return v
}

// weighPhrase takes the phrase instead of dictation's words, which fit the
// spoken frames as given, if it explains the sound about as well.
func (v *verdict) weighPhrase(command []segment, fit float64, spoken int) {
	phrase := textOf(command)
	score, covered := perFrame(command)
	if phrase == "" || covered > maxWordFrames*(strings.Count(phrase, " ")+1) {
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

// perFrame is the mean acoustic log score of the frames that are not filler.
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

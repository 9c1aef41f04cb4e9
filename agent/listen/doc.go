// Package listen turns microphone packets into utterances and their transcripts.
// Packets pass through a decoder, which conceals what was lost and takes out the
// echo, and a detector, which finds voice and its end. Each utterance is a speech
// at work, which gives its sound to recognisers. [Listener] joins them, reports
// turn events and obeys the effects on the listener.
package listen

// Package pocketsphinx recognises English offline with CMU PocketSphinx, whose
// shared library is opened at run time: no C compiler and no headers are needed.
// On Debian it is in libpocketsphinx3, its model in pocketsphinx-en-us.
//
// An utterance is heard by dictation and by a grammar of the request's phrases
// while it is spoken. The phrase is the transcript when it fits the sound about as
// well as dictation's words, and what makes bad English is marked as rejected.
// README.md has the figures.
//
// A phrase of a request is plain words, in which case and punctuation do not
// count and digits are read as words. It may also hold <number> (zero to one
// hundred), alternatives (up | down) and optional words [please]. A phrase that is
// broken, not English, or has words that the dictionary lacks is left out.
package pocketsphinx

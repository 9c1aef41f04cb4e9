// Package pocketsphinx recognises English offline with CMU PocketSphinx, whose
// shared library is opened at run time: no C compiler and no headers are needed.
// On Debian it is in libpocketsphinx3, its model in pocketsphinx-en-us.
//
// An utterance is heard by dictation while it is spoken. At its end two short
// passes measure how well dictation's words fit the sound and how well the
// phrases of the request fit it; the better one is the transcript, and what fits
// English badly is marked as rejected. README.md has the figures.
//
// A phrase of a request is plain words, in which case and punctuation do not
// count and digits are read as words. It may also hold <number> (zero to one
// hundred), alternatives (up | down) and optional words [please]. A phrase that is
// broken, not English, or has words that the dictionary lacks is left out.
package pocketsphinx

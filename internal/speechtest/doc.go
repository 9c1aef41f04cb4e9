// Package speechtest finds recordings of people, music and noise for tests, as
// 16 kHz mono PCM with what is said in them. The recordings are those of Debian
// packages, read where the packages put them; what is missing is an error that
// names the package. Transcripts were typed by hand from what the
// prompts are known to say and checked against a recogniser.
//
// Sources: asterisk-core-sounds-en-g722 (prompts and words, CC-BY-SA-3.0),
// asterisk-moh-opsound-g722 (music), pocketsphinx-testdata (other speakers),
// alsa-utils (noise), and three Mandarin clips in the folder zh (see its NOTICE).
package speechtest

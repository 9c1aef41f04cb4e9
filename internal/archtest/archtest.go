// Package archtest holds the program to its layout: which package imports which,
// how much one type or package may own, which documents comments may cite.
//
// It has tests only. To add a package, add a row to the table in rules_test.go.
package archtest

// Package archtest holds the import rules of the house, as a test.
package archtest

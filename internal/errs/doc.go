// Package errs has the errors that callers test for, and the words that the errors of all rooms
// are made of.
//
// It is below everything, so that the nouns, the contract of stores and every room can return
// the same sentinels; the public names of them stay where programs look for them. An error is
// wrapped with what was attempted: In puts that in front and keeps the module's name at the
// beginning, once; Missing does the same for a call about something that may not be there. Reword
// says an error in other words, which is still the former error to errors.Is and errors.As.
//
// Texts of others (of executors, of users' code, of requests) are cut to a bound by Shorten,
// at the edge of a rune and with a mark, and PlainText makes of them what every store can keep.
// OneOf names the values that there are, and says which one was meant where only the case of
// letters differs. Texts are one text in English and in both ways of writing Chinese.
//
// Bad input returns all faults at once and stores nothing. An error is logged or returned,
// never both. There is no I/O here, no lock and no goroutine.
package errs

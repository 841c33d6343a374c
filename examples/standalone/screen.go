package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asText is a line as a terminal may have it. Names of jobs and apps, and what handlers and
// executors say, are others' texts: what a terminal obeys (escapes of both kinds, carriage
// returns, letters that change the direction of those behind them), or does not show, is
// written out as Go would write it, and so is the end of a line. Signs of all languages
// stay as they are.
func asText(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch sign := text[i : i+size]; {
		case unicode.IsGraphic(r) && (r != utf8.RuneError || size > 1):
			b.WriteString(sign)
		default:
			b.WriteString(strings.Trim(strconv.Quote(sign), `"`))
		}
		i += size
	}
	return b.String()
}

// faultText is an error as the program's last words, a line for each of its own.
func faultText(err error) string {
	var b strings.Builder
	for line := range strings.Lines("standalone: " + err.Error()) {
		b.WriteString(asText(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

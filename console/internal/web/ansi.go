package web

// Colors of terminals in lines of logs. They become classes; all else that a terminal would act
// upon is left out.

import (
	"strings"
	"unicode/utf8"
)

// ansiColors are the classes of the codes 30 to 37, and 90 to 97.
var ansiColors = [...]string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// MostParts is how many changes of color the lines of a page may have. A part of one letter costs
// the page fifty bytes and more; what comes behind them is shown without further colors.
const MostParts = 10_000

// Part is a part of a line in one color.
type Part struct{ Text, Class string }

// Colored are the parts of a line, each in one color. left is how many parts the page has left.
func Colored(line string, left *int) (parts []Part) {
	var b strings.Builder
	color, bold := "", false
	class := func() string {
		c := color
		if c != "" {
			c = "ansi-" + c
		}
		if bold {
			c = strings.TrimSpace(c + " ansi-bold")
		}
		return c
	}
	flush := func() {
		if b.Len() > 0 {
			*left--
			parts = append(parts, Part{Visible(b.String()), class()})
			b.Reset()
		}
	}
	for i := 0; i < len(line); {
		if line[i] != 0x1b {
			_, n := utf8.DecodeRuneInString(line[i:])
			b.WriteString(line[i : i+n])
			i += n
			continue
		}
		codes, n := escape(line[i:])
		i += n
		if codes == nil || *left <= 0 {
			continue
		}
		flush()
		for _, c := range codes {
			switch {
			case c == 0:
				color, bold = "", false
			case c == 1:
				bold = true
			case c == 22:
				bold = false
			case c >= 30 && c <= 37:
				color = ansiColors[c-30]
			case c >= 90 && c <= 97:
				color = ansiColors[c-90]
			case c == 39:
				color = ""
			}
		}
	}
	flush()
	return parts
}

// escape reads what begins with an escape character: how many bytes it has, and the codes of a
// change of color; nil for anything else.
func escape(s string) (codes []int, n int) {
	if len(s) < 2 {
		return nil, len(s)
	}
	switch s[1] {
	case '[': // up to a byte from @ to ~
		codes = []int{0}
		for i := 2; i < len(s); i++ {
			switch c := s[i]; {
			case c >= '0' && c <= '9':
				if last := &codes[len(codes)-1]; *last < 1000 {
					*last = *last*10 + int(c-'0')
				}
			case c == ';':
				if len(codes) == 32 {
					return nil, i + 1
				}
				codes = append(codes, 0)
			case c >= '@' && c <= '~':
				if c != 'm' {
					return nil, i + 1
				}
				return plainCodes(codes), i + 1
			case c < ' ' || c > '~': // it is none
				return nil, i
			}
		}
		return nil, len(s)
	case ']', 'P', 'X', '^', '_': // up to a bell, or an escape and a backslash
		for i := 2; i < len(s); i++ {
			if s[i] == 7 {
				return nil, i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return nil, i + 2
			}
		}
		return nil, len(s)
	}
	return nil, 2
}

// plainCodes leaves out what belongs to 38 and 48, which choose among more colors.
func plainCodes(codes []int) []int {
	for i := 0; i < len(codes); i++ {
		if codes[i] != 38 && codes[i] != 48 || i+1 == len(codes) {
			continue
		}
		end := i + 3 // 38;5;n
		if codes[i+1] == 2 {
			end = i + 5 // 38;2;r;g;b
		}
		codes = append(codes[:i:i], codes[min(end, len(codes)):]...)
		i--
	}
	return codes
}

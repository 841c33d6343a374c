package webhook

// Texts for services with bounds and marks of their own.

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"
	"unicode"

	"github.com/xxljob/xxljob/alarm"
)

// encode writes JSON as short as it can be: "<" stays what it is.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// fit encodes what build makes of a text, which it cuts where that is more than limit bytes of
// JSON. How long a text is in JSON depends on what is in it, so the end is searched for.
func fit(limit int, text string, build func(text string) any) ([]byte, error) {
	body, err := encode(build(text))
	if err != nil || len(body) <= limit {
		return body, err
	}
	tooLong := sort.Search(len(text), func(n int) bool {
		body, err := encode(build(alarm.Cut(text, n)))
		return err != nil || len(body) > limit
	})
	return encode(build(alarm.Cut(text, max(tooLong-1, 0))))
}

// nameless is a text without what chats take for the name of somebody to be called: an "@"
// behind a letter or a digit, as in the address of a mail, begins none, and each other one
// becomes "＠".
func nameless(s string) string {
	before := ' '
	return strings.Map(func(r rune) rune {
		begins := !unicode.IsLetter(before) && !unicode.IsDigit(before)
		before = r
		if r == '@' && begins {
			return '＠'
		}
		return r
	}, s)
}

// defused is nameless, and has "＜" where a "<" would begin a mark.
func defused(s string) string {
	s = nameless(s)
	var out strings.Builder
	for i, r := range s {
		if r == '<' && isMark(s[i+1:]) {
			r = '＜'
		}
		out.WriteRune(r)
	}
	return out.String()
}

// isMark reports whether what is behind a "<" makes it "<at …>" or "</at>", by which Feishu
// calls people. "<@…>" of WeCom is no mark any more.
func isMark(rest string) bool {
	rest = strings.TrimLeft(rest, " /")
	return len(rest) >= 2 && strings.EqualFold(rest[:2], "at")
}

package wire

// A peer may answer with what it was sent, its headers among it: a page of errors, say, or
// a proxy's. What is made of answers goes to logs and into the records of runs, where no
// token belongs.

import (
	"encoding/base64"
	stdjson "encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/wire/internal/json"
)

// hidden stands for a token.
const hidden = "[token]"

// leastHidden is how long a token has to be, in bytes, for texts to be searched for it: a
// shorter one would be found in words.
const leastHidden = 6

// secrets hides tokens in texts. It never changes, and is safe for concurrent use.
type secrets []string // tokens, in each form in which a text may have them, the longest first

// newSecrets hides these tokens: as they are, and as JSON, a URL, Go, HTML or base64 has
// them.
func newSecrets(tokens ...string) (s secrets) {
	for _, t := range tokens {
		if len(t) < leastHidden {
			continue
		}
		asJSON, _ := stdjson.Marshal(t) // of a string: no error
		asGo := strconv.QuoteToASCII(t)
		s = append(s, t, string(asJSON[1:len(asJSON)-1]), string(json.Encode(nil, t)[1:]), asGo[1:len(asGo)-1],
			url.QueryEscape(t), url.PathEscape(t), html.EscapeString(t),
			strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(t)), "="), strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(t)), "="))
	}
	for i := range s {
		s[i] = strings.TrimSuffix(s[i], `"`) // of Encode
	}
	slices.SortFunc(s, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(s)
}

// hide replaces tokens in a text, and the beginnings of tokens, for texts are cut: from half
// of a token on, and eight bytes.
func (s secrets) hide(text string) string {
	for _, form := range s {
		text = hideOne(text, form)
	}
	return text
}

// hideOne replaces one form of a token.
func hideOne(text, form string) string {
	head := form[:min(len(form), max(len(form)/2, 8))]
	var b strings.Builder
	for {
		at := strings.Index(text, head)
		if at < 0 && b.Len() == 0 {
			return text
		}
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		b.WriteString(hidden)
		text = text[at+common(text[at:], form):]
	}
}

// common is how many bytes two texts have in common at their beginnings.
func common(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// hideIn replaces tokens in each of the texts.
func (s secrets) hideIn(texts ...*string) {
	for _, t := range texts {
		*t = s.hide(*t)
	}
}

// hideErr is an error without tokens in its text. It wraps err.
func (s secrets) hideErr(err error) error {
	if err == nil {
		return nil
	}
	if text := s.hide(err.Error()); text != err.Error() {
		return &quietError{text, err}
	}
	return err
}

type quietError struct {
	text string
	err  error
}

func (e *quietError) Error() string { return e.text }
func (e *quietError) Unwrap() error { return e.err }

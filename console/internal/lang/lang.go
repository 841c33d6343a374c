// Package lang has the words of the console in its languages: a catalogue of texts by key, with
// named values and plurals, and which language somebody wants.
package lang

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Tags are the languages there are, the first being the one for who wants none of them.
var tags = []string{"en", "zh-CN", "zh-TW"}

// Tags returns the languages that there are, as "zh-CN".
func Tags() []string { return slices.Clone(tags) }

// Language is the texts of one language. It is never changed.
type Language struct {
	// Tag is its name, as "zh-CN".
	Tag   string
	texts map[string]text
	keys  []string // of texts, in order
}

// text is one text: forms by the number that it is about, or one for all.
type text struct{ one, other string }

func (t *text) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &t.other); err == nil {
		t.one = t.other
		return nil
	}
	var forms struct{ One, Other string }
	if err := json.Unmarshal(data, &forms); err != nil {
		return err
	}
	if forms.Other == "" {
		return fmt.Errorf("a text without the form %q", "other")
	}
	t.one, t.other = forms.One, forms.Other
	if t.one == "" { // a language without a singular
		t.one = t.other
	}
	return nil
}

// Load reads the texts of all languages: a file each, as "zh-CN.json".
func Load(files fs.FS) (map[string]*Language, error) {
	all := map[string]*Language{}
	for _, tag := range tags {
		data, err := fs.ReadFile(files, tag+".json")
		if err != nil {
			return nil, err
		}
		l := &Language{Tag: tag}
		if err := json.Unmarshal(data, &l.texts); err != nil {
			return nil, fmt.Errorf("%s.json: %w", tag, err)
		}
		l.keys = slices.Sorted(maps.Keys(l.texts))
		all[tag] = l
	}
	return all, nil
}

// speaker is a value that has words of its own in each language.
type speaker interface{ In(tag string) string }

// Text returns the text of a key, with values by name: Text("runs.killed", "n", 3). A plural
// goes by the value n; a value that says itself In a language says it in this one. A key that
// there is no text for is its own text.
func (l *Language) Text(key string, values ...any) string {
	t, known := l.texts[key]
	if !known {
		return key
	}
	if len(values) == 0 { // as most are: there is nothing to put in
		return t.other
	}
	s := t.other
	var pairs []string
	for i := 0; i+1 < len(values); i += 2 {
		name, value := fmt.Sprint(values[i]), l.said(values[i+1])
		if n, err := strconv.Atoi(value); name == "n" && err == nil {
			if n == 1 {
				s = t.one
			}
			value = Number(int64(n))
		}
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// said is a value in words.
func (l *Language) said(value any) string {
	if s, speaks := value.(speaker); speaks {
		return s.In(l.Tag)
	}
	return fmt.Sprint(value)
}

// Has reports whether there is a text for the key.
func (l *Language) Has(key string) bool {
	_, known := l.texts[key]
	return known
}

// Keys returns all keys, in order. They are read, and not changed.
func (l *Language) Keys() []string { return l.keys }

// Number is a number with a comma at each thousand.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Accepted returns the language that an Accept-Language header wants most, or "" where it wants
// none that there is. Any Chinese but the traditional one is simplified Chinese.
func Accepted(header string) string {
	best, most := "", 0.0
	for i, part := range strings.Split(header, ",") {
		if i == 20 {
			break // nobody speaks more
		}
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		if v, is := strings.CutPrefix(strings.TrimSpace(params), "q="); is {
			var err error
			if q, err = strconv.ParseFloat(v, 64); err != nil || q < 0 || q > 1 {
				continue
			}
		}
		if tag := Match(name); tag != "" && q > most {
			best, most = tag, q
		}
	}
	return best
}

// Match returns the language of ours that a tag means, or "".
func Match(tag string) string {
	t := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(tag), "_", "-"))
	base, rest, _ := strings.Cut(t, "-")
	switch {
	case base == "en":
		return "en"
	case base != "zh":
		return ""
	case strings.Contains(rest, "hant"), !strings.Contains(rest, "hans") && (rest == "tw" || rest == "hk" || rest == "mo"):
		return "zh-TW"
	default:
		return "zh-CN"
	}
}

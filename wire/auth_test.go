package wire_test

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

func TestKeyring(t *testing.T) {
	ring, err := wire.NewKeyring(wire.Tokens{
		Shared: []string{"shared"},
		Apps:   map[string][]string{"a": {"a-old", "a-new"}, "b": {"b-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		app, token string
		scope      string
		ok         bool
	}{
		{"", "shared", "", true},
		{"a", "shared", "", true},
		{"", "a-old", "a", true}, // up to G3 no app is named: the token tells
		{"", "a-new", "a", true},
		{"a", "a-old", "a", true},
		{"a", "a-new", "a", true},
		{"b", "b-1", "b", true},
		{"b", "a-new", "", false},
		{"c", "a-new", "", false},
		{"a", "", "", false},
		{"", "", "", false},
		{"a", "A-NEW", "", false},
		{"a", "a-ne", "", false},
		{"a", "a-new ", "", false},
	} {
		scope, ok := ring.Authorize(t.Context(), c.app, c.token)
		if scope != c.scope || ok != c.ok {
			t.Errorf("app %q, token %q: %q, %v", c.app, c.token, scope, ok)
		}
	}
}

func TestKeyringRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		tokens wire.Tokens
		want   string
	}{
		"none":           {wire.Tokens{}, "no token"},
		"empty":          {wire.Tokens{Shared: []string{""}}, "is empty"},
		"three":          {wire.Tokens{Apps: map[string][]string{"a": {"s1", "s2", "s3"}}}, `app "a": 3`},
		"of two apps":    {wire.Tokens{Apps: map[string][]string{"a": {"s1"}, "b": {"s1"}}}, `that of app "a"`},
		"shared and not": {wire.Tokens{Shared: []string{"s1"}, Apps: map[string][]string{"b": {"s1"}}}, `app "b"`},
		"no name":        {wire.Tokens{Apps: map[string][]string{"": {"s1"}}}, "without a name"},
		"long":           {wire.Tokens{Shared: []string{"s1" + strings.Repeat("t", 4<<10)}}, "4098 bytes, at most 4096"},
		"long name":      {wire.Tokens{Apps: map[string][]string{strings.Repeat("a", 65): {"s1"}}}, "at most 64 bytes"},
		"control":        {wire.Tokens{Apps: map[string][]string{"a\x1b": {"s1"}}}, "without control characters"},
		"white space":    {wire.Tokens{Shared: []string{"s1\n"}}, "white space"},
		"default":        {wire.Tokens{Apps: map[string][]string{"a": {wire.DefaultToken}}}, "everybody knows"},
	} {
		_, err := wire.NewKeyring(c.tokens)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), "s1") || strings.Contains(err.Error(), wire.DefaultToken) {
			t.Errorf("%s: the error holds a token: %v", name, err)
		}
	}
	if _, err := wire.NewKeyring(wire.Tokens{Shared: []string{wire.DefaultToken}, AllowDefault: true}); err != nil {
		t.Error(err)
	}
}

func TestSameToken(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"x", "x", true}, {"x", "y", false}, {"x", "xx", false}, {"", "", false}, {"x", "", false}} {
		if wire.SameToken(c.a, c.b) != c.want {
			t.Errorf("%q and %q: not %v", c.a, c.b, c.want)
		}
	}
}

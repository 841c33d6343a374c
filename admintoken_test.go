package xxljob_test

import (
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestHandlerNeedsAToken: no token, no handler, unless the config says so in so many
// words; the default token of the samples is refused.
func TestHandlerNeedsAToken(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  xxljob.Config
		made bool
		ok   bool
	}{
		{"none", xxljob.Config{}, true, false},
		{"insecure", xxljob.Config{HTTP: xxljob.HTTPConfig{Insecure: true}}, true, true},
		{"one", xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {stage.Token}}}}, true, true},
		{"the default", xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {"default_token"}}}}, false, false},
		{"the default, allowed", xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {"default_token"}}, AllowDefaultToken: true}}, true, true},
	} {
		s, err := xxljob.New(memory.New(), c.cfg)
		if (err == nil) != c.made {
			t.Errorf("%s: New: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		if h, err := s.AdminHandler(); (err == nil) != c.ok || (h != nil) != c.ok {
			t.Errorf("%s: Handler: %v", c.name, err)
		}
	}
}

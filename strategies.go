package xxljob

// The route strategies that a scheduler has.

import (
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/route"
)

// strategies are XXL-JOB's and the user's. They are only read.
type strategies struct {
	byName map[string]Router
	names  []string // XXL-JOB's first, then the user's in order
}

func newStrategies(cfg *Config, node string) *strategies {
	s := &strategies{byName: map[string]Router{}, names: route.Names()}
	for name, r := range route.Builtin(time.Now, node) {
		s.byName[name] = r
	}
	maps.Copy(s.byName, cfg.Routers)
	for _, name := range slices.Sorted(maps.Keys(cfg.Routers)) {
		if !route.Valid(name) {
			s.names = append(s.names, name)
		}
	}
	return s
}

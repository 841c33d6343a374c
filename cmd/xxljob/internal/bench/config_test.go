package bench

import (
	"strings"
	"testing"
	"time"
)

func TestConfigRefusesWhatItWouldIgnore(t *testing.T) {
	good := Config{Store: Memory, Executor: InProcess, Shape: Steady}
	for what, change := range map[string]func(*Config){
		"store":           func(c *Config) { c.Store = "redis" },
		"executor":        func(c *Config) { c.Executor = "" },
		"shape":           func(c *Config) { c.Shape = "wave" },
		"jobs":            func(c *Config) { c.Jobs = 5 },
		"rate":            func(c *Config) { c.Shape, c.Rate = Herd, 5 },
		"runs":            func(c *Config) { c.Runs = 5 },
		"capacity":        func(c *Config) { c.Shape, c.Capacity = Drain, 5 },
		"duration":        func(c *Config) { c.Shape, c.Duration = Drain, time.Hour },
		"warmup":          func(c *Config) { c.Shape, c.Warmup = Drain, time.Hour },
		"address":         func(c *Config) { c.DSN = "postgres://" },
		"no command":      func(c *Config) { c.Executor = HTTP },
		"negative":        func(c *Config) { c.Rate = -1 },
		"not negative":    func(c *Config) { c.Places = -1 },
		"a second at":     func(c *Config) { c.Duration = time.Millisecond },
		"an hour at most": func(c *Config) { c.Warmup = 2 * time.Hour },
	} {
		c := good
		change(&c)
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestConfigFillsInDefaults(t *testing.T) {
	for shape, want := range map[string]Config{
		Steady:   {Rate: 5000, Warmup: 5 * time.Second, Duration: 30 * time.Second},
		Herd:     {Jobs: 10_000, Warmup: 5 * time.Second, Duration: 30 * time.Second},
		Sparse:   {Jobs: 1_000_000, Rate: 100, Warmup: 5 * time.Second, Duration: 30 * time.Second},
		Drain:    {Jobs: 5000, Runs: 200_000},
		Overload: {Runs: 50_000, Warmup: 5 * time.Second, Duration: 30 * time.Second},
	} {
		c, err := Config{Store: Memory, Executor: InProcess, Shape: shape}.complete()
		if err != nil {
			t.Fatal(err)
		}
		if c.Jobs != want.Jobs || c.Rate != want.Rate || c.Runs != want.Runs || c.Warmup != want.Warmup || c.Duration != want.Duration {
			t.Errorf("%s: %+v", shape, c)
		}
	}
	c, err := Config{Store: Postgres, Executor: HTTP, Shape: Steady, Child: []string{"x"}}.complete()
	if err != nil || c.Connections != 8 || c.Executors != 4 {
		t.Errorf("%+v %v", c, err)
	}
}

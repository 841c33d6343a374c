package bench

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// The loads that there are.
const (
	Steady   = "steady"
	Herd     = "herd"
	Sparse   = "sparse"
	Drain    = "drain"
	Overload = "overload"
)

// Where the state is, and where handlers run.
const (
	Memory    = "memory"
	Postgres  = "postgres"
	InProcess = "inprocess"
	HTTP      = "http"
)

// Config says what is measured. Zero numbers stand for the defaults that are named.
type Config struct {
	Store string `json:"store"` // Memory or Postgres
	// DSN is the address of a Postgres database; a schema is made in it, and dropped. Empty
	// means XXLJOB_TEST_DATABASE_URL, and where that is not set either, a server of our own.
	DSN string `json:"-"`
	// Connections is the size of the pool. Default: 8.
	Connections int `json:"connections,omitempty"`

	Executor string `json:"executor"` // InProcess or HTTP
	// Executors is how many processes there are with HTTP. Default: 4.
	Executors int `json:"executors,omitempty"`

	// Places is how many handlers run at once in a process. Zero: the default of executors.
	Places int `json:"places,omitempty"`

	Shape string `json:"shape"`
	// Jobs is how many there are: of Herd 10,000, that wait with Sparse a million, of Drain
	// 5,000. With Steady and Overload it follows from the rate.
	Jobs int `json:"jobs,omitempty"`
	// Rate is how many runs a second fall due: with Steady 5,000, with Sparse 100. With
	// Overload it follows from the capacity.
	Rate int `json:"rate,omitempty"`
	// Runs is how many wait at the start of Drain. Default: 200,000. With Overload it is the
	// length of the drain that finds the capacity. Default: 50,000.
	Runs int `json:"runs,omitempty"`
	// Capacity is how many runs a second come through, for Overload. Zero: a drain says it.
	Capacity float64 `json:"capacity,omitempty"`
	// Warmup is how long the load lasts before it is measured, and Duration for how long that
	// is. At least one second each. Default: 5 s, 30 s.
	Warmup   time.Duration `json:"warmup_ns,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Patience is how long what is late may take to end after the load. Default: 5 min.
	Patience time.Duration `json:"-"`

	// Child is the command that starts an executor: a program that calls Child. It is needed
	// for HTTP.
	Child []string `json:"-"`
	// Log is where progress goes, and what the scheduler warns of.
	Log io.Writer `json:"-"`
}

// drainJobs is how many jobs the runs of a drain are of.
const drainJobs = 5000

// complete fills in the defaults and checks the rest.
func (c Config) complete() (Config, error) {
	if c.Log == nil {
		c.Log = io.Discard
	}
	c.Log = &sharedLog{w: c.Log}
	for _, choice := range []struct {
		name, is string
		of       []string
	}{
		{"store", c.Store, []string{Memory, Postgres}},
		{"executor", c.Executor, []string{InProcess, HTTP}},
		{"shape", c.Shape, []string{Steady, Herd, Sparse, Drain, Overload}},
	} {
		if !slices.Contains(choice.of, choice.is) {
			return c, fmt.Errorf("%s %q is none of %v", choice.name, choice.is, choice.of)
		}
	}
	if err := c.unused(); err != nil {
		return c, err
	}
	c.fill()
	return c, c.bounds()
}

// unused refuses what the shape would ignore.
func (c Config) unused() error {
	for _, x := range []struct {
		name   string
		given  bool
		shapes []string
	}{
		{"jobs", c.Jobs != 0, []string{Herd, Sparse, Drain}},
		{"rate", c.Rate != 0, []string{Steady, Sparse}},
		{"runs", c.Runs != 0, []string{Drain, Overload}},
		{"capacity", c.Capacity != 0, []string{Overload}},
		{"duration", c.Duration != 0, []string{Steady, Herd, Sparse, Overload}},
		{"warmup", c.Warmup != 0, []string{Steady, Herd, Sparse, Overload}},
	} {
		if x.given && !slices.Contains(x.shapes, c.Shape) {
			return fmt.Errorf("%s says nothing to %s, only to %v", x.name, c.Shape, x.shapes)
		}
	}
	if c.DSN != "" && c.Store != Postgres {
		return fmt.Errorf("an address of a database says nothing to the store in memory")
	}
	if c.Executor == HTTP && len(c.Child) == 0 {
		return fmt.Errorf("no command starts executors")
	}
	return nil
}

func (c *Config) fill() {
	def := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	if c.Store == Postgres {
		def(&c.Connections, 8)
	}
	if c.Executor == HTTP {
		def(&c.Executors, 4)
	}
	switch c.Shape {
	case Steady:
		def(&c.Rate, 5000)
	case Herd:
		def(&c.Jobs, 10_000)
	case Sparse:
		def(&c.Jobs, 1_000_000)
		def(&c.Rate, 100)
	case Drain:
		def(&c.Jobs, drainJobs)
		def(&c.Runs, 200_000)
	case Overload:
		def(&c.Runs, 50_000)
	}
	if c.Shape != Drain {
		setDuration(&c.Warmup, 5*time.Second)
		setDuration(&c.Duration, 30*time.Second)
	}
	setDuration(&c.Patience, 5*time.Minute)
}

func setDuration(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

// bounds refuses numbers that make no sense.
func (c Config) bounds() error {
	if c.Jobs < 0 || c.Rate < 0 || c.Runs < 0 || c.Executors < 0 || c.Places < 0 || c.Connections < 0 || c.Capacity < 0 {
		return fmt.Errorf("numbers are not negative")
	}
	if c.Shape != Drain && (c.Warmup < time.Second || c.Duration < time.Second) {
		return fmt.Errorf("warm-up and duration are a second at least")
	}
	if c.Duration > 24*time.Hour || c.Warmup > time.Hour {
		return fmt.Errorf("the duration is a day, and the warm-up an hour at most")
	}
	return nil
}

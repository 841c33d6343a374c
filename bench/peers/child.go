package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// child is a contestant's process, seen from outside.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	to  *json.Encoder
	of  *json.Decoder
}

// startChild starts one and waits until it is ready to be started. It ends with the context.
func startChild(ctx context.Context, t task) (*child, error) {
	name, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, childArg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	c := &child{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}
	if err = c.to.Encode(t); err == nil {
		_, err = c.hear()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", t.Who, err), c.end())
	}
	return c, nil
}

// do gives an order and waits for the answer.
func (c *child) do(o order) (answer, error) {
	if err := c.to.Encode(o); err != nil {
		return answer{}, err
	}
	return c.hear()
}

func (c *child) hear() (a answer, err error) {
	if err = c.of.Decode(&a); err == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	return a, err
}

// end ends the process, which does so when there are no more orders, and waits for it.
func (c *child) end() error { return errors.Join(c.in.Close(), c.cmd.Wait()) }

// team is the processes of one contestant that work together.
type team []*child

// startTeam starts so many of them side by side.
func startTeam(ctx context.Context, t task, n int) (team, error) {
	all := make(team, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i], errs[i] = startChild(ctx, t) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, all.end())
	}
	return all, nil
}

// do gives all of them an order at once, and adds up the answers.
func (t team) do(o order) (sum answer, all []answer, err error) {
	all = make([]answer, len(t))
	errs := make([]error, len(t))
	var wg sync.WaitGroup
	for i, c := range t {
		wg.Go(func() { all[i], errs[i] = c.do(o) })
	}
	wg.Wait()
	for i, a := range all {
		if i == 0 {
			sum.Alloc = a.Alloc
		} else {
			sum.Alloc = sum.Alloc.Plus(a.Alloc)
		}
		sum.Calls += a.Calls
		sum.Done += a.Done
	}
	return sum, all, errors.Join(errs...)
}

// see stops all of them, and returns what their handlers have seen. Of several, it is the calls
// alone that are added up.
func (t team) see(w window) (answer, error) {
	sum, _, err := t.do(order{Do: "stop"})
	if err != nil {
		return sum, err
	}
	_, all, err := t.do(order{Do: "see", Window: w})
	if err != nil {
		return sum, err
	}
	sum.Seen = all[0].Seen
	for _, a := range all[1:] {
		sum.Seen.Calls += a.Seen.Calls
		sum.Seen.Twice += a.Seen.Twice
		sum.Seen.First = min(sum.Seen.First, a.Seen.First)
	}
	return sum, nil
}

func (t team) pids() (pids []int) {
	for _, c := range t {
		pids = append(pids, c.cmd.Process.Pid)
	}
	return pids
}

func (t team) end() error {
	var errs []error
	for _, c := range t {
		if c != nil {
			errs = append(errs, c.end())
		}
	}
	return errors.Join(errs...)
}

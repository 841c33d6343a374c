package storetest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// A call that fails After it took effect: the caller is told of an error, and the
// job is there.
func ExampleWrap() {
	ctx := context.Background()
	store := storetest.Wrap(memory.New())
	if err := store.SetShards(ctx, 32); err != nil {
		fmt.Println(err)
		return
	}
	store.Inject("AddJob", storetest.Fault{After: true, Calls: 1})
	job := xxljob.Job{App: "billing", Key: "report", Name: "nightly report", Handler: "report"}
	_, err := store.AddJob(ctx, job, nil)
	fmt.Println(errors.Is(err, storetest.ErrInjected), err)
	_, err = store.AddJob(ctx, job, nil)
	fmt.Println(errors.Is(err, xxljob.ErrDuplicateKey))
	fmt.Println(store.Calls("AddJob"), "calls")
	// Output:
	// true storetest: injected fault after the call
	// true
	// 2 calls
}

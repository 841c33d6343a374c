package route_test

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/route"
)

var addrs = []string{
	"http://10.0.0.1:9999/",
	"http://10.0.0.2:9999/",
	"http://10.0.0.3:9999/",
}

// The strategies by their stored names.
func ExampleBuiltin() {
	routers := route.Builtin(time.Now, "local://me")
	for _, name := range []string{route.First, route.Last, route.ConsistentHash, route.ShardingBroadcast} {
		to, err := routers[name].Route(context.Background(), 7, addrs)
		fmt.Println(name, to, err)
	}
	// Output:
	// FIRST [http://10.0.0.1:9999/] <nil>
	// LAST [http://10.0.0.3:9999/] <nil>
	// CONSISTENT_HASH [http://10.0.0.2:9999/] <nil>
	// SHARDING_BROADCAST [http://10.0.0.1:9999/ http://10.0.0.2:9999/ http://10.0.0.3:9999/] <nil>
}

// Nine triggers over three addresses are three for each, wherever the job
// begins.
func ExampleNewRound() {
	round, count := route.NewRound(), map[string]int{}
	for range 9 {
		to, _ := round.Route(context.Background(), 7, addrs)
		count[to[0]]++
	}
	fmt.Println(count)
	// Output:
	// map[http://10.0.0.1:9999/:3 http://10.0.0.2:9999/:3 http://10.0.0.3:9999/:3]
}

// A node that serves the handler itself runs the job itself.
func ExampleNewNearest() {
	nearest := route.NewNearest("local://me", route.NewFirst())
	for _, addrs := range [][]string{addrs, append(addrs, "local://me")} {
		to, _ := nearest.Route(context.Background(), 7, addrs)
		fmt.Println(to)
	}
	// Output:
	// [http://10.0.0.1:9999/]
	// [local://me]
}

// A router of one's own that needs no memory is a function.
func ExampleFunc() {
	second := route.Func(func(addrs []string) []string { return addrs[1:2:2] })
	fmt.Println(second.Route(context.Background(), 7, addrs))
	fmt.Println(second.Route(context.Background(), 7, nil))
	// Output:
	// [http://10.0.0.2:9999/] <nil>
	// [] xxljob: route: no address
}

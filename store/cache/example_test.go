package cache_test

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store/cache"
)

type machine struct {
	Name, Zone string
}

func machineName(m machine) (string, error) { return m.Name, nil }

func machineZone(m machine) ([]string, error) {
	if m.Zone == "" {
		return nil, errors.New("no zone")
	}
	return []string{m.Zone}, nil
}

func ExampleStore() {
	machines, err := cache.NewStore(cache.StoreConfig[machine]{Key: machineName})
	if err != nil {
		fmt.Println(err)
		return
	}
	machines.Add(machine{"m2", "east"})
	machines.Add(machine{"m1", "west"})
	machines.Update(machine{"m2", "north"})

	m, exists := machines.GetByKey("m2")
	fmt.Println(m, exists)
	for name, m := range machines.All() {
		fmt.Println(name, m.Zone)
	}
	// Output:
	// {m2 north} true
	// m1 west
	// m2 north
}

func ExampleIndexer() {
	machines, err := cache.NewIndexer(
		cache.StoreConfig[machine]{Key: machineName},
		cache.Indexers[machine]{"zone": machineZone},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	machines.Replace([]machine{{"m1", "west"}, {"m2", "east"}, {"m3", "west"}}, 17)

	west, err := machines.ByIndex("zone", "west")
	fmt.Println(west, err)
	zones, err := machines.ListIndexFuncValues("zone")
	fmt.Println(zones, err)
	fmt.Println(machines.Add(machine{Name: "m4"}))
	// Output:
	// [{m1 west} {m3 west}] <nil>
	// [east west] <nil>
	// index "zone" failed for "m4": no zone
}

func ExampleStore_Transaction() {
	machines, err := cache.NewStore(cache.StoreConfig[machine]{Key: machineName})
	if err != nil {
		fmt.Println(err)
		return
	}
	machines.Add(machine{"m1", "west"})
	err = machines.Transaction(
		cache.Transaction[machine]{Type: cache.TransactionDelete, Item: machine{Name: "m1"}},
		cache.Transaction[machine]{Type: cache.TransactionAdd, Item: machine{"m2", "west"}},
	)
	fmt.Println(machines.List(), err)
	// Output: [{m2 west}] <nil>
}

func ExampleThreadSafeStore() {
	var zones cache.ThreadSafeStore[int] // machines per zone
	zones.Add("west", 3, 1)
	before := zones.View()
	zones.Update("west", 4, 2)
	zones.Delete("east", 3)

	now, _ := zones.Get("west")
	then, _ := before.GetByKey("west")
	fmt.Println(now, "at", zones.LastRevision(), "was", then, "at", before.LastRevision())
	// Output: 4 at 3 was 3 at 1
}

func ExampleThreadSafeStore_Swap() {
	s := new(cache.ThreadSafeStore[string])
	fmt.Println(s.Swap("a", "first", 1))
	fmt.Println(s.Swap("a", "second", 2))
	// Output:
	//  false <nil>
	// first true <nil>
}

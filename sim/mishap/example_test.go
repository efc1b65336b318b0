package mishap_test

import (
	"fmt"

	"github.com/watchmill/watchmill/sim/mishap"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func ExampleSpoil() {
	m := mishap.Mishaps{Lose: true, Repeat: true}
	for from := store.Revision(1); from < 10; from += 3 {
		batch := backend.Batch{After: from, Through: from + 3}
		for rev := from + 1; rev <= from+3; rev++ {
			batch.Events = append(batch.Events, store.Event{Revision: rev})
		}
		batch = mishap.Spoil(&m, batch)
		fmt.Print("after ", batch.After, ":")
		for _, ev := range batch.Events {
			fmt.Print(" ", ev.Revision)
		}
		fmt.Println(" through", batch.Through)
	}
	// Output:
	// after 1: 2 4 through 4
	// after 4: 5 6 6 7 through 7
	// after 7: 8 9 10 through 10
}

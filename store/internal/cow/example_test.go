package cow_test

import (
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/store/internal/cow"
)

// word is an entry that is its own place.
type word string

func (w word) Place() cow.Place        { return cow.Place{Text: string(w)} }
func (w word) Compare(p cow.Place) int { return strings.Compare(string(w), p.Text) }

func Example() {
	var words cow.Tree[word]
	words.Set("banana")
	words.Set("apple")
	view := words.View()
	words.Delete(cow.Place{Text: "banana"})
	words.Set("cherry")

	print := func(entries []word) bool { fmt.Println(entries); return true }
	view.Leaves(print)
	words.Leaves(print)
	// Output:
	// [apple banana]
	// [apple cherry]
}

package cow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// numbered is an entry with something to tell versions of it apart.
type numbered struct {
	place  Place
	number int
}

func (n numbered) Place() Place        { return n.place }
func (n numbered) Compare(p Place) int { return n.place.Compare(p) }

// at returns the i-th of 1,000 places, some of which have a text in common.
func at(i int) Place { return Place{fmt.Sprintf("%03d", i/10), fmt.Sprint(i % 10)} }

// treeWith returns a tree with an entry at each place.
func treeWith(places ...Place) *Tree[numbered] {
	t := new(Tree[numbered])
	for i, p := range places {
		t.Set(numbered{p, i})
	}
	return t
}

// model is a tree that is obviously right.
type model map[Place]int

func (m model) clone() model {
	c := model{}
	for p, number := range m {
		c[p] = number
	}
	return c
}

// from returns the entries that are not before p, in order.
func (m model) from(p Place) []numbered {
	found := []numbered{}
	for at, number := range m {
		if at.Compare(p) >= 0 {
			found = append(found, numbered{at, number})
		}
	}
	slices.SortFunc(found, func(a, b numbered) int { return a.place.Compare(b.place) })
	return found
}

func TestTree_AgreesWithAMap(t *testing.T) {
	places := rapid.Custom(func(t *rapid.T) Place { return at(rapid.IntRange(0, 999).Draw(t, "place")) })
	rapid.Check(t, func(t *rapid.T) {
		tree, m, written := new(Tree[numbered]), model{}, 0
		type past struct {
			view Tree[numbered]
			m    model
		}
		var pasts []past
		set := func(p Place) {
			written++
			prev, replaced := tree.Set(numbered{p, written})
			number, had := m[p]
			require.Equal(t, had, replaced)
			require.Equal(t, number, prev.number)
			m[p] = written
		}
		remove := func(p Place) {
			prev, found := tree.Delete(p)
			number, had := m[p]
			require.Equal(t, had, found)
			require.Equal(t, number, prev.number)
			delete(m, p)
		}
		several := func(t *rapid.T, do func(Place)) {
			first, n := rapid.IntRange(0, 999).Draw(t, "first"), rapid.IntRange(0, 400).Draw(t, "n")
			for i := first; i < min(first+n, 1000); i++ {
				do(at(i))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set":             func(t *rapid.T) { set(places.Draw(t, "place")) },
			"set in order":    func(t *rapid.T) { several(t, set) },
			"delete":          func(t *rapid.T) { remove(places.Draw(t, "place")) },
			"delete in order": func(t *rapid.T) { several(t, remove) },
			"set many": func(t *rapid.T) {
				for _, p := range rapid.SliceOfN(places, 0, 300).Draw(t, "places") {
					set(p)
				}
			},
			"view": func(*rapid.T) { pasts = append(pasts, past{tree.View(), m.clone()}) },
			"fork": func(*rapid.T) {
				fork := tree.View().Fork()
				pasts = append(pasts, past{*tree, m.clone()})
				tree = &fork
			},
			"": func(t *rapid.T) { requireSame(t, m, *tree, places.Draw(t, "from")) },
		})
		for _, p := range pasts {
			requireSame(t, p.m, p.view, Place{})
		}
	})
}

// requireSame compares all ways to read a tree with the model, and checks its nodes.
func requireSame(t require.TestingT, m model, tree Tree[numbered], from Place) {
	all := m.from(Place{})
	require.Equal(t, len(all), tree.Len())
	read := []numbered{}
	tree.Leaves(func(entries []numbered) bool { read = append(read, entries...); return true })
	require.Equal(t, all, read)
	read = read[:0]
	for c := tree.Cursor(); ; {
		e, found := c.Next()
		if !found {
			break
		}
		read = append(read, e)
	}
	require.Equal(t, all, read)
	read = []numbered{}
	tree.Ascend(from, func(e numbered) bool { read = append(read, e); return true })
	require.Equal(t, m.from(from), read)
	e, found := tree.Get(from)
	number, had := m[from]
	require.Equal(t, had, found)
	require.Equal(t, number, e.number)
	if tree.root != nil {
		requireSound(t, tree.root, Place{}, true)
	}
}

// requireSound checks the nodes below n, whose entries must not be before first, and returns
// how many levels they have.
func requireSound(t require.TestingT, n *node[numbered], first Place, isRoot bool) (levels int) {
	require.Positive(t, n.size())
	if n.isLeaf() {
		require.LessOrEqual(t, len(n.entries), maxEntries)
		require.GreaterOrEqual(t, n.entries[0].Compare(first), 0)
		return 1
	}
	require.LessOrEqual(t, len(n.parts), maxParts)
	require.False(t, isRoot && len(n.parts) == 1, "a root that does nothing")
	for i, p := range n.parts {
		begins := first
		if i > 0 {
			require.GreaterOrEqual(t, p.first.Compare(first), 0)
			begins = p.first
		}
		below := requireSound(t, p.node, begins, false)
		require.True(t, levels == 0 || levels == below, "a leaf is less deep than another")
		levels = below
	}
	return levels + 1
}

// leaves returns how many leaves a tree has, and how many entries there is room for.
func leaves(t *Tree[numbered]) (n, room int) {
	t.Leaves(func(entries []numbered) bool {
		n++
		room += cap(entries)
		return true
	})
	return n, room
}

func TestTree_EntriesThatComeInOrderFillTheLeaves(t *testing.T) {
	const size = 100 * maxEntries
	inOrder, amongOthers := new(Tree[numbered]), treeWith(at(0), Place{"b", ""}, Place{"d", ""})
	for i := range size {
		inOrder.Set(numbered{Place{Text: fmt.Sprintf("%06d", i)}, i})
		amongOthers.Set(numbered{Place{"c", fmt.Sprintf("%06d", i)}, i})
	}
	for _, tree := range []*Tree[numbered]{inOrder, amongOthers} {
		n, room := leaves(tree)
		require.InDelta(t, size/maxEntries, n, 2)
		require.InEpsilon(t, size, room, 0.02)
	}
}

func TestTree_OtherEntriesFillTwoThirdsOfTheLeaves(t *testing.T) {
	const size = 10_000
	tree, random := new(Tree[numbered]), rand.New(rand.NewPCG(1, 2))
	for _, i := range random.Perm(size) {
		tree.Set(numbered{Place{Text: fmt.Sprintf("%06d", i)}, i})
	}
	n, room := leaves(tree)
	require.InEpsilon(t, size*3/2/maxEntries, n, 0.1)
	require.Less(t, room, size*6/5, "leaves that are not full do not take the memory of full ones")
}

func TestTree_DeletionsLeaveFewNodes(t *testing.T) {
	const size = 10_000
	tree, random := new(Tree[numbered]), rand.New(rand.NewPCG(1, 2))
	order := random.Perm(size)
	for _, i := range order {
		tree.Set(numbered{Place{Text: fmt.Sprintf("%06d", i)}, i})
	}
	for _, i := range order[:size*99/100] {
		tree.Delete(Place{Text: fmt.Sprintf("%06d", i)})
	}
	n, _ := leaves(tree)
	require.Less(t, n, 4*(size/100)/maxEntries+4)
	for _, i := range order[size*99/100:] {
		tree.Delete(Place{Text: fmt.Sprintf("%06d", i)})
	}
	require.Nil(t, tree.root)
}

func TestTree_AViewTakesNoCopies(t *testing.T) {
	tree := treeWith(at(1), at(2))
	require.Zero(t, testing.AllocsPerRun(10, func() { tree.View() }))
	before := tree.View()
	tree.Set(numbered{at(1), 9})
	require.NotSame(t, before.root, tree.root, "the first write after a view copies")
	after := tree.root
	tree.Set(numbered{at(1), 10})
	require.Same(t, after, tree.root, "the second does not")
}

func TestTree_AtGoesFromTheFirstToTheLast(t *testing.T) {
	var places []Place
	for i := range 1000 {
		places = append(places, at(i))
	}
	tree := treeWith(places...)
	require.Equal(t, at(0), tree.At(0).place)
	require.Equal(t, at(999), tree.At(0.999999).place)
	require.Equal(t, at(999), tree.At(1).place)
	require.InDelta(t, 500, tree.At(0.5).number, 100)
}

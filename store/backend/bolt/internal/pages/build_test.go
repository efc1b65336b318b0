package pages_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// built is the size of the pages of files that tests build.
const built = 1024

// The kinds of pages.
const (
	branch   = 0x01
	leaf     = 0x02
	freelist = 0x10
)

// Where the fields of a page's header and of its elements are.
const (
	pageID, pageFlags, pageCount, pageOverflow      = 0, 8, 10, 12
	firstElement, elementBytes                      = 16, 16
	leafFlags, leafPosition, leafKeySize, leafValue = 0, 4, 8, 12
	branchPosition, branchKeySize, branchChild      = 0, 4, 8
)

var order = binary.NativeEndian

// entry is an element of a page: of a leaf, with a value, or of a branch, with a child.
type entry struct {
	key, value string
	bucket     bool
	child      uint64
}

// tree returns the contents of a branch or a leaf, as bbolt writes it, without what fills its
// last page.
func tree(id uint64, kind uint16, entries ...entry) []byte {
	page := make([]byte, firstElement+len(entries)*elementBytes)
	order.PutUint64(page[pageID:], id)
	order.PutUint16(page[pageFlags:], kind)
	order.PutUint16(page[pageCount:], uint16(len(entries)))
	for i, e := range entries {
		at := firstElement + i*elementBytes
		position, element := uint32(len(page)-at), page[at:]
		if kind == branch {
			order.PutUint32(element[branchPosition:], position)
			order.PutUint32(element[branchKeySize:], uint32(len(e.key)))
			order.PutUint64(element[branchChild:], e.child)
			e.value = ""
		} else {
			if e.bucket {
				order.PutUint32(element[leafFlags:], 1)
			}
			order.PutUint32(element[leafPosition:], position)
			order.PutUint32(element[leafKeySize:], uint32(len(e.key)))
			order.PutUint32(element[leafValue:], uint32(len(e.value)))
		}
		page = append(page, e.key+e.value...)
	}
	return page
}

// free returns a freelist.
func free(id uint64, numbers ...uint64) []byte {
	page := tree(id, freelist)
	order.PutUint16(page[pageCount:], uint16(len(numbers)))
	for _, n := range numbers {
		page = order.AppendUint64(page, n)
	}
	return page
}

// bucketOf is the entry of a bucket, whose page is inside it if root is zero.
func bucketOf(name string, root, sequence uint64, inside ...byte) entry {
	value := order.AppendUint64(order.AppendUint64(nil, root), sequence)
	return entry{key: name, value: string(append(value, inside...)), bucket: true}
}

// build returns a file of these pages, from page 2 on, with its root at 2 and its freelist at 3.
// Those that need more than one page are followed by as many.
func build(contents ...[]byte) []byte {
	var rest []byte
	for _, page := range contents {
		whole := make([]byte, (len(page)+built-1)/built*built)
		copy(whole, page)
		order.PutUint32(whole[pageOverflow:], uint32(len(whole)/built-1))
		rest = append(rest, whole...)
	}
	image := make([]byte, 2*built, 2*built+len(rest))
	for id := range uint64(2) {
		meta := image[id*built:]
		order.PutUint64(meta[pageID:], id)
		order.PutUint16(meta[pageFlags:], 0x04)
		order.PutUint32(meta[metaMagic:], 0xED0CDAED)
		order.PutUint32(meta[metaVersion:], 2)
		order.PutUint32(meta[metaSizeOfPages:], built)
		order.PutUint64(meta[metaRoot:], 2)
		order.PutUint64(meta[metaFreelist:], 3)
		order.PutUint64(meta[metaHighWater:], uint64(2+len(rest)/built))
		order.PutUint64(meta[metaTxid:], id)
		sum := fnv.New64a()
		_, _ = sum.Write(meta[metaMagic:metaSum])
		order.PutUint64(meta[metaSum:], sum.Sum64())
	}
	return append(image, rest...)
}

// tour returns what Walk visits, and the problems that it reports, as text.
func tour(t testing.TB, image []byte) (items, problems []string) {
	t.Helper()
	file := bytes.NewReader(image)
	metas, err := pages.ReadMetas(file, file.Size())
	require.NoError(t, err)
	require.Nil(t, metas.Invalid)
	require.NoError(t, pages.Walk(file, metas.Newest, func(it pages.Item) error {
		value := it.Value
		if len(value) > 3 {
			value = value[:3]
		}
		items = append(items, fmt.Sprintf("%s#%d %s=%s @%d", it.Bucket, it.Sequence, it.Key, value, it.Page))
		return nil
	}, func(p pages.Problem) { problems = append(problems, p.Error()) }))
	require.NoError(t, pages.Walk(file, metas.Newest, nil, nil), "without functions")
	return items, problems
}

// small is a file with everything: a bucket "b" of two levels with a value of two pages, a bucket
// "i" inside the root, and a free page, 6.
func small() []byte {
	return build(
		tree(2, leaf, bucketOf("b", 4, 7), bucketOf("i", 0, 9, tree(0, leaf, entry{key: "x", value: "8"}, entry{key: "y"})...)),
		free(3, 6),
		tree(4, branch, entry{key: "a", child: 5}, entry{key: "m", child: 7}),
		tree(5, leaf, entry{key: "a", value: "1"}, entry{key: "c", value: "2"}),
		free(6),
		tree(7, leaf, entry{key: "m", value: strings.Repeat("3", built)}),
	)
}

// at returns the offset of a field of a page.
func at(page, field int) int { return page*built + field }

// element returns the offset of a field of an element of a page.
func element(page, i, field int) int { return at(page, firstElement+i*elementBytes+field) }

// put returns a change of a number in a file.
func put[N uint16 | uint32 | uint64](offset int, number N) func([]byte) {
	return func(image []byte) {
		_, _ = binary.Encode(image[offset:], order, number)
	}
}

func TestWalk_SaysWhatIsWrongWithAPage(t *testing.T) {
	items, problems := tour(t, small())
	require.Empty(t, problems)
	require.Equal(t, []string{
		"b#7 = @2", "b#7 a=1 @5", "b#7 c=2 @5", "b#7 m=333 @7", "i#9 = @2", "i#9 x=8 @2", "i#9 y= @2",
	}, items)
	bucketB := bytes.Index(small()[2*built:], []byte("b")) + 1 // its value
	inside := bytes.Index(small()[2*built:], []byte("i")) + 1 + 16
	for _, c := range []struct {
		change  func([]byte)
		problem string
		lost    []int // the pages that are not found then
	}{
		{put(at(5, pageID), uint64(9)), "page 5: it says that it is page 9", []int{5}},
		{put(at(7, pageOverflow), uint32(2)), "page 7: it reaches over the end, with 2 more pages", []int{7, 8}},
		{put(at(5, pageFlags), uint16(freelist)), "page 5: it is not part of a tree: its flags are 0x10", []int{5}},
		{put(at(5, pageFlags), uint16(branch|leaf)), "page 5: it is not part of a tree: its flags are 0x3", []int{5}},
		{put(at(5, pageCount), uint16(64)), "page 5: 64 elements do not fit", []int{5}},
		{put(at(5, pageCount), uint16(63)), "page 5: its elements have 1028 bytes, its pages 1024", []int{5}},
		{put(at(7, pageOverflow), uint32(0)), "page 7: its elements have 1057 bytes, its pages 1024", []int{7, 8}},
		{put(at(5, pageOverflow), uint32(1)), "page 5: its elements have 52 bytes, its pages 2048", []int{5}},
		{put(element(5, 0, leafPosition), uint32(33)), "page 5: element 0 of 2 is not where it belongs", nil},
		{put(element(5, 1, leafPosition), uint32(17)), "page 5: element 1 of 2 is not where it belongs", nil},
		{func(image []byte) {
			put(element(5, 0, leafKeySize), uint32(0))(image)
			put(element(5, 0, leafValue), uint32(2))(image)
		}, "page 5: element 0 of 2 has no key", nil},
		{put(element(5, 1, leafFlags), uint32(2)), "page 5: element 1 of 2 has unknown flags, 0x2", nil},
		{put(element(5, 1, leafFlags), uint32(1)), `page 5: bucket "c" is cut off`, nil},
		{put(at(4, pageCount), uint16(0)), "page 4: a branch without children", []int{5, 7, 8}},
		{put(element(4, 0, branchChild), uint64(1)), "page 4: its child 1 does not exist", []int{5}},
		{put(element(4, 0, branchChild), uint64(9)), "page 4: its child 9 does not exist", []int{5}},
		{put(element(4, 1, branchChild), uint64(5)), "page 5: it is used twice", []int{7, 8}},
		{func(image []byte) { image[at(5, firstElement+2*elementBytes)] = 'c' }, "page 5: element 1 of 2 is not in the order of keys", nil},
		{func(image []byte) { image[at(5, firstElement+2*elementBytes)] = 'A' }, "page 5: its first key belongs on another page", nil},
		{func(image []byte) { image[at(5, firstElement+2*elementBytes+2)] = 'm' }, "page 5: the key of element 1 of 2 belongs on another page", nil},
		{put(at(3, pageFlags), uint16(leaf)), "page 3: it is not a freelist: its flags are 0x2", []int{3, 6}},
		{put(at(3, pageID), uint64(4)), "page 3: it says that it is page 4", []int{3, 6}},
		{put(at(3, pageCount), uint16(10)), "page 3: a freelist of 10 pages does not fit", []int{3, 6}},
		{put(at(3, pageCount), uint16(0)), "page 6: it is neither used nor free", nil},
		{put(at(3, firstElement), uint64(1)), "page 1: it is on the freelist and does not exist", []int{6}},
		{put(at(3, firstElement), uint64(9)), "page 9: it is on the freelist and does not exist", []int{6}},
		{put(at(3, firstElement), uint64(8)), "page 8: it is used and on the freelist", []int{6}},
		{put(at(2, bucketB), uint64(9)), `page 2: the root of bucket "b", page 9, does not exist`, []int{4, 5, 7, 8}},
		{put(at(2, bucketB), uint64(1)), `page 2: the root of bucket "b", page 1, does not exist`, []int{4, 5, 7, 8}},
		{put(at(2, bucketB), uint64(0)), `page 2: bucket "b" is cut off`, []int{4, 5, 7, 8}},
		{put(at(2, inside-16), uint64(4)), `page 2: bucket "i" has a root and something after it`, nil},
		{put(at(2, inside+pageFlags), uint16(branch)), `page 2: bucket "i" is not a page inside its element`, nil},
		{put(at(2, inside+pageCount), uint16(3)), `page 2: bucket "i" is not a page inside its element`, nil},
		{put(at(2, inside+firstElement+leafValue), uint32(2)), `page 2: in bucket "i": element 1 of 2 is not where it belongs`, nil},
		{put(at(2, inside+firstElement+elementBytes+leafValue), uint32(1)), `page 2: in bucket "i": element 1 of 2 is not where it belongs`, nil},
		{func(image []byte) { image[at(2, inside+firstElement+2*elementBytes)] = 'z' }, `page 2: in bucket "i": element 1 of 2 is not in the order of keys`, nil},
	} {
		t.Run(c.problem, func(t *testing.T) {
			image := small()
			c.change(image)
			want := []string{c.problem}
			for _, page := range c.lost {
				want = append(want, fmt.Sprintf("page %d: it is neither used nor free", page))
			}
			_, problems := tour(t, image)
			require.Equal(t, want, problems)
		})
	}
}

// A freelist may have as many numbers as there are pages, and not twice the same.
func TestWalk_SaysThatAPageIsFreeTwice(t *testing.T) {
	image := small()
	for i := range 9 {
		put(at(3, firstElement+8*i), uint64(6))(image)
	}
	put(at(3, pageCount), uint16(9))(image)
	_, problems := tour(t, image)
	require.Equal(t, slices.Repeat([]string{"page 6: it is on the freelist twice"}, 8), problems)
}

// Free pages come in order, and none that cannot be one.
func TestFree_ListsPagesThatExist(t *testing.T) {
	of := func(ids ...uint64) ([]uint64, error) {
		image := small()
		put(at(3, pageCount), uint16(len(ids)))(image)
		for i, id := range ids {
			put(at(3, firstElement+8*i), id)(image)
		}
		metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
		require.NoError(t, err)
		return pages.Free(bytes.NewReader(image), metas.Newest)
	}
	free, err := of(6, 5)
	require.NoError(t, err)
	require.Equal(t, []uint64{5, 6}, free)
	for _, id := range []uint64{0, 1, 1 << 40, 1 << 63} {
		_, err = of(5, id)
		require.EqualError(t, err, "page 3: the freelist has pages that do not exist")
	}
}

// What is in order, and at the limit of what may be.
func TestWalk_TakesWhatIsJustRight(t *testing.T) {
	many := make([]uint64, 126) // which fill a page
	var filler [][]byte
	for i := range many {
		many[i] = uint64(4 + i)
		filler = append(filler, free(0))
	}
	for name, image := range map[string][]byte{
		"nothing": build(tree(2, leaf), free(3)),
		"a full page": build(tree(2, leaf, bucketOf("b", 4, 1)), free(3),
			tree(4, leaf, entry{key: "k", value: strings.Repeat("v", built-firstElement-elementBytes-1)})),
		"a full freelist":                  build(append([][]byte{tree(2, leaf), free(3, many...)}, filler...)...),
		"a bucket inside, without keys":    build(tree(2, leaf, bucketOf("b", 0, 1, tree(0, leaf)...)), free(3)),
		"a table that fills several pages": build(tree(2, leaf, bucketOf("b", 4, 1)), free(3), tree(4, leaf, numbered(200)...)),
	} {
		_, problems := tour(t, image)
		require.Empty(t, problems, name)
	}
	image := build(append([][]byte{tree(2, leaf), free(3, many...)}, filler...)...)
	put(at(3, pageCount), uint16(len(many)+1))(image)
	_, problems := tour(t, image)
	require.Contains(t, problems, "page 3: a freelist of 127 pages does not fit")
}

// numbered returns n entries.
func numbered(n int) (all []entry) {
	for i := range n {
		all = append(all, entry{key: fmt.Sprintf("%04d", i), value: "v"})
	}
	return all
}

// A branch below another one has keys below the next of that one.
func TestWalk_BoundsTheKeysOfAllLevels(t *testing.T) {
	deep := func(last string) []byte {
		return build(tree(2, leaf, bucketOf("b", 4, 1)), free(3),
			tree(4, branch, entry{key: "a", child: 5}, entry{key: "m", child: 7}),
			tree(5, branch, entry{key: "a", child: 6}),
			tree(6, leaf, entry{key: "a"}, entry{key: last}),
			tree(7, leaf, entry{key: "m"}, entry{key: "zz"}))
	}
	_, problems := tour(t, deep("l"))
	require.Empty(t, problems)
	_, problems = tour(t, deep("m"))
	require.Equal(t, []string{"page 6: the key of element 1 of 2 belongs on another page"}, problems)
}

// A page may be within the pages of another one.
func TestWalk_FindsAPageWithinAnother(t *testing.T) {
	value := strings.Repeat("v", built-firstElement-elementBytes-1) + string(tree(5, leaf))
	image := build(tree(2, leaf, bucketOf("b", 4, 1), bucketOf("c", 5, 1)), free(3), tree(4, leaf, entry{key: "k", value: value}))
	_, problems := tour(t, image)
	require.Equal(t, []string{"page 5: it is used twice"}, problems)
}

// Buckets inside a page are walked where they are among its other elements.
func TestWalk_GoesOnAfterABucketInsideThePage(t *testing.T) {
	inside := tree(0, leaf, entry{key: "x", value: "1"}, entry{key: "y", value: "2"}, entry{key: "z", value: "3"})
	image := build(tree(2, leaf, bucketOf("a", 0, 1, inside...), bucketOf("b", 4, 2), bucketOf("c", 0, 3, inside...)), free(3),
		tree(4, leaf, entry{key: "k", value: "4"}))
	items, problems := tour(t, image)
	require.Empty(t, problems)
	require.Equal(t, []string{
		"a#1 = @2", "a#1 x=1 @2", "a#1 y=2 @2", "a#1 z=3 @2", "b#2 = @2", "b#2 k=4 @4", "c#3 = @2", "c#3 x=1 @2", "c#3 y=2 @2", "c#3 z=3 @2",
	}, items)
}

// Each read may fail.
func TestWalk_PassesOnAnyReadThatFails(t *testing.T) {
	many := make([]uint64, 300) // a freelist of several pages
	contents := [][]byte{tree(2, leaf, bucketOf("b", 6, 1)), free(3, many...), tree(6, leaf, numbered(200)...)}
	for i := range many {
		many[i] = uint64(11 + i)
		contents = append(contents, free(0))
	}
	contents[1] = free(3, many...)
	image := build(contents...)
	_, problems := tour(t, image)
	require.Empty(t, problems)
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	broken := errors.New("broken")
	failed := 0
	for left := 0; ; left++ {
		file := &failingOnce{sparse{0, image}, left, broken}
		err := pages.Walk(file, metas.Newest, nil, func(p pages.Problem) { t.Error(p) })
		if file.left >= 0 {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, broken)
		failed++
	}
	require.Equal(t, 2+1+3, failed, "the freelist, the root, and the header, the table and the keys of a leaf")
}

// Items of a bucket in a bucket are of the one at the top.
func TestWalk_NamesTheBucketAtTheTop(t *testing.T) {
	inner := bucketOf("inner", 0, 2, tree(0, leaf, entry{key: "k", value: "v"})...)
	items, problems := tour(t, build(tree(2, leaf, bucketOf("outer", 0, 1, tree(0, leaf, inner)...)), free(3)))
	require.Empty(t, problems)
	require.Equal(t, []string{"outer#1 = @2", "outer#1 k=v @2"}, items)
}

// Depth is bounded, so that damage does not exhaust the stack.
func TestWalk_BoundsDepth(t *testing.T) {
	const most = 64
	branches := func(n int) []byte { // below the root, at depth 0
		contents := [][]byte{tree(2, leaf, bucketOf("b", 4, 1)), free(3)}
		for id := uint64(4); id < 4+uint64(n); id++ {
			contents = append(contents, tree(id, branch, entry{key: "a", child: id + 1}))
		}
		return build(append(contents, tree(4+uint64(n), leaf, entry{key: "a"}))...)
	}
	items, problems := tour(t, branches(most-1))
	require.Empty(t, problems)
	require.Len(t, items, 2)
	items, problems = tour(t, branches(most))
	require.Equal(t, "page 67: the tree is too deep", problems[0])
	require.Len(t, items, 1)

	buckets := func(n int) []byte { // inside one another, below the root and a page
		inside := tree(4, leaf)
		for range n {
			inside = tree(4, leaf, bucketOf("b", 0, 1, inside...))
		}
		return build(tree(2, leaf, bucketOf("b", 4, 1)), free(3), inside)
	}
	_, problems = tour(t, buckets(most-1))
	require.Empty(t, problems)
	_, problems = tour(t, buckets(most))
	require.Equal(t, []string{"page 4: the buckets are too deep"}, problems)
}

// An error of the visitor ends the walk, also at a bucket.
func TestWalk_EndsAtABucketWhenTheVisitorDoes(t *testing.T) {
	file := bytes.NewReader(small())
	metas, err := pages.ReadMetas(file, file.Size())
	require.NoError(t, err)
	enough := errors.New("enough")
	for calls := range 7 {
		left := calls
		err = pages.Walk(file, metas.Newest, func(pages.Item) error {
			if left--; left < 0 {
				return enough
			}
			return nil
		}, nil)
		require.ErrorIs(t, err, enough)
		require.Equal(t, -1, left)
	}
}

// counting is a file that counts the bytes that are read.
type counting struct {
	*bytes.Reader
	read int64
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.read += int64(len(p))
	return c.Reader.ReadAt(p, at)
}

// manyFold returns a branch at page 4 with a child for each of these pages.
func manyFold(children []uint64) []byte {
	entries := make([]entry, len(children))
	for i, child := range children {
		entries[i] = entry{key: fmt.Sprintf("%04d", i), child: child}
	}
	return tree(4, branch, entries...)
}

// A file that names a large page over and over, or many that lie in one another, takes no
// more reading than another of its size.
func TestWalk_ReadsAPageOnce(t *testing.T) {
	const children, large = 200, 200
	pagesOf := func(page []byte) uint64 { return uint64((len(page) + built - 1) / built) }
	begin := 4 + pagesOf(manyFold(make([]uint64, children)))

	same := slices.Repeat([]uint64{begin}, children)
	nested := make([]uint64, children)
	for i := range nested {
		nested[i] = begin + uint64(i)
	}
	backwards := slices.Clone(nested)
	slices.Reverse(backwards)
	for name, named := range map[string][]uint64{"the same": same, "nested": nested, "nested, backwards": backwards} {
		image := build(
			tree(2, leaf, bucketOf("b", 4, 7)), free(3), manyFold(named),
			tree(begin, leaf, entry{key: "0000", value: strings.Repeat("x", large*built-100)}),
		)
		for i := range uint64(large - 1) { // each page begins one that reaches to the end
			page := tree(begin+i, leaf, entry{key: strings.Repeat("0", int(large-i)*built-firstElement-elementBytes)})
			if name != "the same" {
				copy(image[at(int(begin+i), 0):][:firstElement+elementBytes], page)
				put(at(int(begin+i), pageOverflow), uint32(large-i-1))(image)
			}
		}
		file := &counting{Reader: bytes.NewReader(image)}
		metas, err := pages.ReadMetas(file, file.Size())
		require.NoError(t, err)
		var problems []string
		require.NoError(t, pages.Walk(file, metas.Newest, nil, func(p pages.Problem) { problems = append(problems, p.Error()) }))
		require.NotEmpty(t, problems, name)
		require.Less(t, file.read, 4*file.Size(), name)
	}
}

package backend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/tree"
)

type account struct {
	store.Object
	Value accountValue
}

type accountValue struct {
	ID      string
	Balance int
}

// accounts tells storage how to deal with accounts. An engine makes a schema from
// its configuration.
var accounts = store.Schema{
	New:      func() *store.Object { return &new(account).Object },
	Clone:    func(o *store.Object) *store.Object { c := *store.As[account](o); return &c.Object },
	Pointer:  func(o *store.Object) any { return &store.As[account](o).Value },
	Key:      func(o *store.Object) string { return store.As[account](o).Value.ID },
	Describe: func(*store.Object) {},
	Size:     func(*store.Object) int { return 32 },
	Equal:    func(a, b *store.Object) bool { return store.As[account](a).Value == store.As[account](b).Value },
}

func newAccount(id string, balance int) *store.Object {
	return &(&account{Value: accountValue{id, balance}}).Object
}

func balance(o *store.Object) int { return store.As[account](o).Value.Balance }

// ledger returns storage with two accounts.
func ledger() *backend.Storage {
	b, err := memory.New(accounts, memory.Options{FirstRevision: 1})
	if err != nil {
		panic(err)
	}
	s := backend.NewStorage(b, accounts)
	_, _ = s.Create(context.Background(), newAccount("alice", 100), backend.CreateOptions{})
	_, _ = s.Create(context.Background(), newAccount("bob", 5), backend.CreateOptions{})
	return s
}

func ExampleNewStorage() {
	s := ledger()
	defer s.Backend().Close()

	alice, err := s.Get(context.Background(), "alice")
	fmt.Println(balance(alice), err)
	_, err = s.Create(context.Background(), newAccount("alice", 0), backend.CreateOptions{})
	fmt.Println(errors.Is(err, store.ErrExists))
	// Output:
	// 100 <nil>
	// true
}

// An update is a function of the current object. It is called again if another writer
// was faster, so no write is lost.
func ExampleStorage_GuaranteedUpdate() {
	s := ledger()
	defer s.Backend().Close()

	withdraw := func(_ context.Context, current *store.Object) (*store.Object, error) {
		if balance(current) < 10 {
			return nil, errors.New("not enough money")
		}
		return newAccount(current.Key, balance(current)-10), nil
	}
	for _, id := range []string{"alice", "bob"} {
		o, err := s.GuaranteedUpdate(context.Background(), id, withdraw, backend.UpdateOptions{})
		if err != nil {
			fmt.Println(id, err)
			continue
		}
		fmt.Println(id, balance(o))
	}
	// Output:
	// alice 90
	// bob not enough money
}

// Modify sees when the object expires, may choose another time, and may delete it.
func ExampleStorage_Modify() {
	s := ledger()
	defer s.Backend().Close()

	closeEmpty := func(_ context.Context, current *store.Object) (backend.Change, error) {
		if balance(current) == 0 {
			return backend.Change{Delete: true}, nil
		}
		return backend.Change{Draft: newAccount(current.Key, 0)}, nil
	}
	for range 2 {
		o, err := s.Modify(context.Background(), "bob", closeEmpty, backend.ModifyOptions{})
		fmt.Println(balance(o), o.Revision, err)
	}
	_, err := s.Get(context.Background(), "bob")
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// 0 4 <nil>
	// 0 5 <nil>
	// true
}

func ExampleStorage_Delete() {
	s := ledger()
	defer s.Backend().Close()

	_, err := s.Delete(context.Background(), "alice", backend.DeleteOptions{
		Validate: func(_ context.Context, current *store.Object) error {
			if balance(current) > 0 {
				return errors.New("the account is not empty")
			}
			return nil
		},
	})
	fmt.Println(err)
	// Output:
	// the account is not empty
}

func ExampleStorage_List() {
	s := ledger()
	defer s.Backend().Close()

	opts := backend.ListOptions{Limit: 1}
	for {
		page, err := s.List(context.Background(), opts)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, o := range page.Items {
			fmt.Println(o.Key, "at", page.Revision, "remaining:", page.Remaining)
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return
		}
	}
	// Output:
	// alice at 3 remaining: 1
	// bob at 3 remaining: 0
}

func ExampleToken() {
	token := backend.Token{Revision: 7, Start: "ns/pod-10"}
	text := token.Encode()
	back, err := backend.ParseToken(text)
	fmt.Println(text)
	fmt.Println(back.Revision, back.Start, err)
	_, err = backend.ParseToken("abc")
	fmt.Println(err)
	// Output:
	// eyJ2IjoyLCJydiI6Nywic3RhcnQiOiJucy9wb2QtMTAifYBdEXg
	// 7 ns/pod-10 <nil>
	// invalid continue token: its checksum does not match: it was cut or changed: list again without a token
}

// How a backend serves a list from what it has.
func ExamplePage() {
	state := []*store.Object{{Key: "a"}, {Key: "b"}, {Key: "c"}}
	const revision = 7

	scan, err := backend.ListOptions{Limit: 2}.Scan()
	if err == nil {
		err = scan.Check(0, revision)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	page := backend.Page(scan, revision, slices.Values(state))
	fmt.Println(len(page.Items), page.Remaining, page.Continue != "")

	next, err := backend.ListOptions{Limit: 2, Continue: page.Continue}.Scan()
	fmt.Println(next.Revision, next.After, err)
	// Output:
	// 2 1 true
	// 7 b <nil>
}

// Storage that keeps its state in a tree does not read what remains after a page.
func ExampleStatePage() {
	state := tree.New()
	for _, key := range []string{"a", "b", "c"} {
		state.Put(&store.Object{Key: key})
	}
	scan, err := backend.ListOptions{Limit: 1}.Scan()
	if err != nil {
		fmt.Println(err)
		return
	}
	page := backend.StatePage(scan, 7, state.View())
	fmt.Println(page.Items[0].Key, page.Remaining, page.Continue != "")
	// Output: a 2 true
}

// A revision is worth writing down only beside what it is a revision of.
func ExampleStoreID() {
	ctx := context.Background()
	b, err := memory.New(accounts, memory.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	other, err := memory.New(accounts, memory.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close()
	here, _ := backend.StoreID(ctx, b)
	there, _ := backend.StoreID(ctx, other)
	fmt.Println(here == there)
	// Output:
	// false
}

package store

import "fmt"

// TransactionType says what a transaction does.
type TransactionType uint8

// The types of transaction. Add and Update are the same: they store the item
// whether or not there was one.
const (
	TransactionAdd TransactionType = iota + 1
	TransactionUpdate
	TransactionDelete
)

// String returns the type's name in lower case.
func (t TransactionType) String() string {
	switch t {
	case TransactionAdd:
		return "add"
	case TransactionUpdate:
		return "update"
	case TransactionDelete:
		return "delete"
	}
	return fmt.Sprintf("TransactionType(%d)", uint8(t))
}

// Transaction is one of several writes that readers see together, for a
// [Store].
type Transaction[T any] struct {
	Type TransactionType
	Item T
}

// KeyedTransaction is one of several writes that readers see together, for a
// [ThreadSafeStore].
type KeyedTransaction[T any] struct {
	Type TransactionType
	Key  string
	// Item is ignored when the type is TransactionDelete.
	Item T
	// Revision is that of the change, zero if it has none.
	Revision Revision
}

// Transaction applies all of txns in order and atomically: readers see none or
// all. One that fails is skipped and the others are applied; the error is then a
// [*TransactionError].
func (s *ThreadSafeStore[T]) Transaction(txns ...KeyedTransaction[T]) error {
	return s.transact(len(txns), func(i int) (KeyedTransaction[T], error) { return txns[i], nil })
}

// transact applies the n transactions that txn returns.
func (s *ThreadSafeStore[T]) transact(n int, txn func(i int) (KeyedTransaction[T], error)) error {
	return s.records.transact(n, func(i int) (step, error) {
		next, err := txn(i)
		return step{kind: next.Type, key: next.Key, item: next.Item, revision: next.Revision}, err
	})
}

// step is a [KeyedTransaction] without the type of its item.
type step struct {
	kind     TransactionType
	key      string
	item     any
	values   [][]string // of the item in the indexes
	revision Revision
}

// transact applies the n steps that next returns. It calls next in the writer's
// turn.
func (s *recordStore) transact(n int, next func(i int) (step, error)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	var failed []error
	applied := make([]int, 0, n)
	steps := make([]step, 0, n)
	for i := range n {
		step, err := s.prepare(next(i))
		if err != nil {
			failed = append(failed, fmt.Errorf("transaction %d: %w", i, err))
			continue
		}
		applied, steps = append(applied, i), append(steps, step)
	}
	commit(s, func(live *records) *records {
		for _, step := range steps {
			apply(step, live)
		}
		return live
	})
	if failed != nil {
		return &TransactionError{Total: n, Applied: applied, Errors: failed}
	}
	return nil
}

// prepare returns a step that can no longer fail.
func (s *recordStore) prepare(next step, err error) (step, error) {
	if err != nil {
		return next, err
	}
	switch next.kind {
	case TransactionAdd, TransactionUpdate:
		prev, functions := find(s, next.key)
		next.values, err = describe(functions, next.key, next.item, prev)
		return next, err
	case TransactionDelete:
		return next, nil
	}
	return next, fmt.Errorf("%w: %v: use TransactionAdd, TransactionUpdate or TransactionDelete", ErrUnsupported, next.kind)
}

// apply is not a method, for the reason of [recordsOf].
func apply(next step, live *records) {
	if next.kind == TransactionDelete {
		live.remove(next.key)
	} else {
		live.put(next.key, live.find(next.key), next.item, next.values)
	}
	live.reach(next.revision)
}

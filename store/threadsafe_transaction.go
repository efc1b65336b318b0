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
	s.writing.Lock()
	defer s.writing.Unlock()
	var failed []error
	applied := make([]int, 0, n)
	steps := make([]step[T], 0, n)
	for i := range n {
		next, err := s.prepare(txn(i))
		if err != nil {
			failed = append(failed, fmt.Errorf("transaction %d: %w", i, err))
			continue
		}
		applied, steps = append(applied, i), append(steps, next)
	}
	s.commit(func(live *current[T]) {
		for _, next := range steps {
			next.apply(live)
		}
	})
	if failed != nil {
		return &TransactionError{Total: n, Applied: applied, Errors: failed}
	}
	return nil
}

// step is a transaction that can no longer fail.
type step[T any] struct {
	KeyedTransaction[T]
	values [][]string
}

func (s *ThreadSafeStore[T]) prepare(txn KeyedTransaction[T], err error) (step[T], error) {
	next := step[T]{KeyedTransaction: txn}
	if err != nil {
		return next, err
	}
	switch txn.Type {
	case TransactionAdd, TransactionUpdate:
		next.values, err = s.describe(txn.Key, txn.Item)
		return next, err
	case TransactionDelete:
		return next, nil
	}
	return next, fmt.Errorf("%w: %v: use TransactionAdd, TransactionUpdate or TransactionDelete", ErrUnsupported, txn.Type)
}

func (p step[T]) apply(live *current[T]) {
	if p.Type == TransactionDelete {
		live.remove(p.Key)
	} else {
		live.put(p.Key, p.Item, p.values)
	}
	live.reach(p.Revision)
}

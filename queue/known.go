package queue

// KnownObjects is what the consumer of a queue knows: usually its
// [store.Store], which it changes while it processes what it pops, and at no
// other time. Both methods are called with the queue locked, so they must not
// call the queue.
type KnownObjects[T any] interface {
	// ListKeys returns the keys of all objects. Synthetic deletions come in
	// its order.
	ListKeys() []string
	// GetByKey returns the object under key and whether there is one.
	GetByKey(key string) (T, bool)
}

// pendingState is what the consumer will know once it has processed what it has
// popped and what is queued: for each key the newest delta, in order.
type pendingState[T any] struct{ newest orderedMap[*Delta[T]] }

// note makes d the newest of its key.
func (p *pendingState[T]) note(d *Delta[T]) {
	at := p.newest.at(d.Key)
	if at == nil {
		at = p.newest.push(d.Key)
	}
	*at = d
}

// missing returns tombstones for all that exists according to p and known but is
// not listed: first what is pending, then what is only known. What is pending
// decides over what is known, as it is newer.
func (p *pendingState[T]) missing(list *listing[T], known KnownObjects[T]) []*Deleted[T] {
	var gone []*Deleted[T]
	listed := list.keys()
	for key, newest := range p.newest.all() {
		if !listed[key] && (*newest).Type != DeltaDeleted {
			gone = append(gone, &Deleted[T]{Key: key, Last: (*newest).Object, Known: true, Stale: true})
		}
	}
	if known == nil {
		return gone
	}
	for _, key := range known.ListKeys() {
		if !listed[key] && p.newest.at(key) == nil {
			last, exists := known.GetByKey(key)
			gone = append(gone, &Deleted[T]{Key: key, Last: last, Known: exists, Stale: true})
		}
	}
	return gone
}

// unchanged returns a DeltaSync for each known object of which nothing is pending:
// one for the others would move them back in time.
func (p *pendingState[T]) unchanged(known KnownObjects[T]) []Delta[T] {
	if known == nil {
		return nil
	}
	var deltas []Delta[T]
	for _, key := range known.ListKeys() {
		if p.newest.at(key) != nil {
			continue
		}
		if object, exists := known.GetByKey(key); exists {
			deltas = append(deltas, Delta[T]{Type: DeltaSync, Key: key, Object: object})
		}
	}
	return deltas
}

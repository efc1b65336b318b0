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

// pending is what the consumer will know once it has processed what it has
// popped and what is queued: for each key the newest delta, in order.
type pending[T any] = linked[*Delta[T]]

// note makes d the newest of its key.
func note[T any](p *pending[T], d *Delta[T]) {
	at := p.at(d.Key)
	if at == nil {
		at = p.push(d.Key)
	}
	*at = d
}

// missing returns tombstones for all that exists according to pending and known
// but not according to the list: first what is pending, then what is only known.
// What is pending decides over what is known, as it is newer.
func missing[T any](list *listing[T], p *pending[T], known KnownObjects[T]) []*Deleted[T] {
	var gone []*Deleted[T]
	has := list.has()
	for key, newest := range p.all() {
		if !has[key] && (*newest).Type != DeltaDeleted {
			gone = append(gone, &Deleted[T]{Key: key, Last: (*newest).Object, Known: true, Stale: true})
		}
	}
	if known == nil {
		return gone
	}
	for _, key := range known.ListKeys() {
		if !has[key] && p.at(key) == nil {
			last, exists := known.GetByKey(key)
			gone = append(gone, &Deleted[T]{Key: key, Last: last, Known: exists, Stale: true})
		}
	}
	return gone
}

// quiet returns what is known of the objects about which nothing is pending: to
// tell the others again would move them back in time.
func quiet[T any](p *pending[T], known KnownObjects[T]) []keyed[T] {
	if known == nil {
		return nil
	}
	var objects []keyed[T]
	for _, key := range known.ListKeys() {
		if p.at(key) != nil {
			continue
		}
		if object, exists := known.GetByKey(key); exists {
			objects = append(objects, keyed[T]{key, object})
		}
	}
	return objects
}

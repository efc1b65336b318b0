package queue

// keptSlots is the most slots that an empty queue keeps: what took more was a burst.
const keptSlots = 1024

// burstMap is a map that releases the memory of a burst once it is empty. A map of Go keeps
// what the most entries took that it ever had. The zero value is empty.
type burstMap[K comparable, V any] struct {
	entries map[K]V
	most    int // the most entries since the last burst
}

func (m *burstMap[K, V]) put(key K, value V) {
	if m.entries == nil {
		m.entries = make(map[K]V)
	}
	m.entries[key] = value
	m.most = max(m.most, len(m.entries))
}

func (m *burstMap[K, V]) remove(key K) {
	delete(m.entries, key)
	if len(m.entries) == 0 && m.most > keptSlots {
		m.entries, m.most = nil, 0
	}
}

package registry

// DeletePage is how many objects DeleteAll reads at once.
const DeletePage = deletePage

package registry

// DeletePage is how many objects DeleteCollection reads at once.
const DeletePage = deletePage

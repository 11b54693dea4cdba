// A page that only watches.

import { createRoot } from 'react-dom/client'
import { Watch } from './Watch'

const thread = new URLSearchParams(location.search).get('thread')!
createRoot(document.getElementById('root')!).render(<Watch threadId={thread} />)

import { mount } from 'svelte';

import Chat from './chat.svelte';

mount(Chat, { target: document.querySelector('#root') });
